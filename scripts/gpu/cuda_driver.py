"""NVIDIA's driver through ctypes: one device, its memory, and the two kernels of `kernels.cu`.

It needs nothing but `libcuda.so.1`, which comes with the driver itself. `kernels.ptx` is made with
`nvcc -ptx -arch=compute_75 -O3 kernels.cu`, its `.version` lowered to 6.4, which drivers from 2019 on understand.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

from scripts.gpu.outcome import Failed, Skipped

PTX = Path(__file__).with_name("kernels.ptx")
LEAST_CAPABILITY = (7, 5)
"""What the kernels are compiled for."""
TILE = 16
"""Threads of a block in each direction."""

_MAJOR, _MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*"""


class CudaDevice:
    """The first device, with a context of its own until `close`."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise Skipped(f"no NVIDIA driver: {error}") from None
        code = self._library.cuInit(0)
        if code:
            raise Skipped(f"the driver cannot be used: {self._name(code)}")
        self._device = ctypes.c_int()
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        if not count.value:
            raise Skipped("the driver sees no GPU")
        self._call("cuDeviceGet", ctypes.byref(self._device), 0)
        self._context = ctypes.c_void_p()
        self._module = ctypes.c_void_p()

    def name(self) -> str:
        """The card's name."""
        text = ctypes.create_string_buffer(100)
        self._call("cuDeviceGetName", text, len(text), self._device)
        return text.value.decode("utf-8", "replace")

    def capability(self) -> tuple[int, int]:
        """The compute capability."""
        return self._attribute(_MAJOR), self._attribute(_MINOR)

    def open(self) -> CudaDevice:
        """Make the context and load the kernels; Skipped for a card too old for them."""
        if self.capability() < LEAST_CAPABILITY:
            raise Skipped("compute capability {}.{} is below 7.5".format(*self.capability()))
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)
        self.bind()
        self._call("cuModuleLoadData", ctypes.byref(self._module), PTX.read_bytes() + b"\0")
        return self

    def bind(self) -> None:
        """Make the context the calling thread's."""
        self._call("cuCtxSetCurrent", self._context)

    def close(self) -> None:
        """Let the context go, with all its memory."""
        if self._context.value:
            self._call("cuDevicePrimaryCtxRelease_v2", self._device)
            self._context = ctypes.c_void_p()

    def free_and_total_bytes(self) -> tuple[int, int]:
        """Memory of the device."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def allocate(self, size_bytes: int) -> ctypes.c_uint64:
        """Device memory."""
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size_bytes))
        return address

    def free(self, address: ctypes.c_uint64) -> None:
        """Give device memory back."""
        self._call("cuMemFree_v2", address)

    def put(self, data: bytes) -> ctypes.c_uint64:
        """New device memory that holds `data`."""
        address = self.allocate(len(data))
        self._call("cuMemcpyHtoD_v2", address, data, ctypes.c_size_t(len(data)))
        return address

    def get(self, address: ctypes.c_uint64, size_bytes: int) -> bytes:
        """A copy of device memory; waits for what was launched before."""
        data = ctypes.create_string_buffer(size_bytes)
        self._call("cuMemcpyDtoH_v2", data, address, ctypes.c_size_t(size_bytes))
        return data.raw

    def kernel(self, name: str) -> ctypes.c_void_p:
        """One of the kernels."""
        function = ctypes.c_void_p()
        self._call("cuModuleGetFunction", ctypes.byref(function), self._module, name.encode())
        return function

    def launch(
        self,
        kernel: ctypes.c_void_p,
        operands: tuple[ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64],
        shape: tuple[int, int, int],
    ) -> None:
        """Start a product of `shape` (rows, columns, depth); does not wait for it."""
        values = [*operands, *(ctypes.c_int(size) for size in shape)]
        parameters = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        blocks = [-(-size // TILE) for size in (shape[1], shape[0])]
        self._call("cuLaunchKernel", kernel, *blocks, 1, TILE, TILE, 1, 0, None, parameters, None)

    def wait(self) -> None:
        """Until everything launched has ended."""
        self._call("cuCtxSynchronize")

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), number, self._device)
        return value.value

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            raise Failed(f"{name}: {self._name(code)}")

    def _name(self, code: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuGetErrorName(code, ctypes.byref(text))
        return text.value.decode() if text.value else f"error {code}"
