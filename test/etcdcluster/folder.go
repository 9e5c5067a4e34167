package etcdcluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// block is the unit in which copyFile looks for zeros.
const block = 64 << 10

// copyFolder copies a member's data folder to the path to, which need not exist.
// Files that etcd made in advance and has not begun to use (*.tmp) stay out: it
// renames them at any time, and makes them again at its next start. Zeros take no
// room in the copy, because etcd reserves 64 MiB for a log of some kilobytes.
func copyFolder(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("copy the folder %s: %w", from, err)
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case strings.HasSuffix(rel, ".tmp"):
			return nil
		default:
			return copyFile(filepath.Join(to, rel), path)
		}
	})
}

// copyFile copies one file and its mode, and leaves holes for blocks of zeros.
func copyFile(to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	buf, zeros := make([]byte, block), make([]byte, block)
	var size int64
	for {
		n, err := io.ReadFull(in, buf)
		if n > 0 && !bytes.Equal(buf[:n], zeros[:n]) {
			if _, err := out.WriteAt(buf[:n], size); err != nil {
				return err
			}
		}
		size += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return out.Truncate(size)
		}
		if err != nil {
			return err
		}
	}
}
