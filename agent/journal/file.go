package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// FS is the folder of a journal. All calls may block on the disk. The journal
// uses it from one goroutine at a time.
type FS interface {
	// Open opens a file for reading and writing. With create it makes the
	// file, or empties it; without, an absent file is fs.ErrNotExist.
	Open(name string, create bool) (File, error)
	// Rename moves a file over another, atomically.
	Rename(from, to string) error
	// SyncDir makes creations and renames durable.
	SyncDir() error
}

// File is one open file. Sync may run beside the other calls.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size returns the file's size in bytes.
	Size() (int64, error)
	// Sync makes the file's bytes durable.
	Sync() error
	// Allocate makes sure that later writes up to offset end find room; bytes
	// never written read as zero.
	Allocate(end int64) error
}

// dirFS is a folder of the operating system.
type dirFS string

func (d dirFS) Open(name string, create bool) (File, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(filepath.Join(string(d), name), flags, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d dirFS) Rename(from, to string) error {
	return os.Rename(filepath.Join(string(d), from), filepath.Join(string(d), to))
}

func (d dirFS) SyncDir() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) Sync() error {
	return retryInterrupted(func() error { return unix.Fdatasync(int(f.Fd())) })
}

// Allocate extends the file with fallocate, and by writing zeros where the
// file system does not know that call.
func (f osFile) Allocate(end int64) error {
	size, err := f.Size()
	if err != nil || end <= size {
		return err
	}
	err = retryInterrupted(func() error { return unix.Fallocate(int(f.Fd()), 0, size, end-size) })
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	zeros := make([]byte, min(end-size, 1<<20))
	for size < end {
		n, err := f.WriteAt(zeros[:min(int64(len(zeros)), end-size)], size)
		if err != nil {
			return err
		}
		size += int64(n)
	}
	return nil
}

func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// readAll returns a file's bytes.
func readAll(f File) ([]byte, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > MaxFile+headerSize+2*headroomMost {
		return nil, fmt.Errorf("it has %d bytes, more than any journal", size)
	}
	data := make([]byte, size)
	n, err := f.ReadAt(data, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return data[:n], err
}

// takeLock takes the folder's lock without waiting and writes our pid into it.
func takeLock(dir string) (*os.File, error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal: open lock: %w", err)
	}
	if err := retryInterrupted(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }); err != nil {
		text, _ := io.ReadAll(io.LimitReader(f, 32))
		f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("journal: lock %s: %w", path, err)
		}
		owner := strings.TrimSpace(string(text))
		if owner == "" {
			owner = "unknown"
		}
		return nil, fmt.Errorf("journal: %s is locked by pid %s; stop it, or choose another data folder: %w", dir, owner, ErrLocked)
	}
	pid := strconv.Itoa(os.Getpid()) + "\n"
	if err := f.Truncate(0); err == nil {
		// A full disk must not keep the agent from starting: the pid is only
		// for the message above.
		_, _ = f.WriteAt([]byte(pid), 0)
	}
	return f, nil
}

// diskFull reports whether err means that there is no room.
func diskFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// exists reports whether a file is there.
func exists(dir FS, name string) (bool, error) {
	f, err := dir.Open(name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}
