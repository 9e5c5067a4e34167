package sysfs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Open returns the tree of a folder that holds sys/ and proc/: "/" for the
// running host. No link of another folder leads out of it, since a captured
// tree may come from anyone, and a link into the running /proc can block its
// reader for ever. Such a tree holds one file descriptor until it is collected.
//
// The error says that the folder cannot be opened or holds no folder sys.
func Open(root string) (fs.FS, error) {
	if filepath.Clean(root) == "/" {
		return os.DirFS("/"), nil
	}
	folder, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("the tree to read: %w", err)
	}
	if info, err := folder.Stat("sys"); err != nil || !info.IsDir() {
		folder.Close()
		return nil, fmt.Errorf("the tree to read: %s holds no folder sys", root)
	}
	return folder.FS(), nil
}
