/* The two products that an encoder is made of: out (rows x columns) = left (rows x depth) times the transpose of
   right (columns x depth), one thread an element. Plain on purpose: they need nothing but the driver, and what they
   show is a real device under load, not what a library could get out of it.

   kernels.ptx is made of this: see `PTX` in cuda_driver.py. The tests compile this very file for the processor. */

extern "C" __global__ void product_fp32(const float *left, const float *right, float *out,
                                        int rows, int columns, int depth) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns) return;
    float sum = 0.0f;
    for (int step = 0; step < depth; step++) sum += left[row * depth + step] * right[column * depth + step];
    out[row * columns + column] = sum;
}

/* Four signed bytes a word; `depth` counts words. */
extern "C" __global__ void product_int8(const int *left, const int *right, int *out,
                                        int rows, int columns, int depth) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns) return;
    int sum = 0;
    for (int step = 0; step < depth; step++)
        sum = __dp4a(left[row * depth + step], right[column * depth + step], sum);
    out[row * columns + column] = sum;
}
