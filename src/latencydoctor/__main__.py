"""`python -m latencydoctor` is the same program as `latencydoctor`."""

from latencydoctor.cli.main import main

if __name__ == "__main__":
    main()
