"""One folder a VIM driver, behind one written contract (docs/contracts/vim.md)."""
