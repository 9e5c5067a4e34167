package handoff

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// FS is how the files of a folder are changed; they are read where they are. All
// calls may block on the disk. A Dir uses it from one goroutine at a time.
type FS interface {
	// WriteFile makes a file with these permissions, or replaces its content
	// and sets them. A failure may leave the file half done.
	WriteFile(path string, data []byte, mode fs.FileMode) error
	// Rename moves a file over another, atomically.
	Rename(from, to string) error
	// Remove takes a file away; an absent one is fs.ErrNotExist.
	Remove(path string) error
	// Allocate gives a file exactly size bytes, for which the disk keeps room, and
	// makes it if it is absent. It fails where the disk can take few more files.
	Allocate(path string, size int64) error
}

// osFS is the operating system's.
type osFS struct{}

func (osFS) Rename(from, to string) error { return os.Rename(from, to) }
func (osFS) Remove(path string) error     { return os.Remove(path) }

// WriteFile sets the permissions regardless of the umask.
func (osFS) WriteFile(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Chmod(mode), f.Close())
}

// Allocate uses fallocate, and writes zeros where the file system does not know
// that call.
func (osFS) Allocate(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(allocate(f, size), f.Close())
	if err == nil {
		err = checkInodes(path)
	}
	return err
}

func allocate(f *os.File, size int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if size <= info.Size() {
		return f.Truncate(size)
	}
	for {
		err = unix.Fallocate(int(f.Fd()), 0, info.Size(), size-info.Size())
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	zeros := make([]byte, min(size-info.Size(), 64<<10))
	for at := info.Size(); at < size; {
		n, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at)
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// diskFull reports whether err means that there is no room.
func diskFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// leastInodes is the number of files that a folder's file system must be able to
// take. A file system without such a limit reports 0 of 0.
const leastInodes = 256

// checkInodes returns an error if a file system is short of inodes.
func checkInodes(path string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	if s.Files > 0 && s.Ffree < min(leastInodes, s.Files/2) {
		return &fs.PathError{Op: "find free inodes in", Path: path, Err: unix.ENOSPC}
	}
	return nil
}
