"""OpenStack as a VIM, by Keystone's version 3."""
