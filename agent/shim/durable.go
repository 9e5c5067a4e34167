package shim

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// This file writes the files of a folder, whole and durably, also on a full file system.

// disk is the file system of a folder.
type disk interface {
	// Open opens a file for writing, and keeps the bytes and blocks of an older file.
	Open(path string) (diskFile, error)
	Rename(from, to string) error
	SyncDir(path string) error
}

type diskFile interface {
	Write(p []byte) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// host is the file system of the host.
type host struct{}

func (host) Open(path string) (diskFile, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
}
func (host) Rename(from, to string) error { return os.Rename(from, to) }
func (host) SyncDir(path string) error    { return syncDir(path) }

// temporary is the ending of a file before the rename. A file with held room has the ending
// from the start on: the write needs no further block then, and no further file.
const temporary = ".tmp"

// replace replaces a file: the bytes are durable before the name is, and the name before
// replace returns.
func replace(d disk, folder, name string, data []byte) (err error) {
	path := filepath.Join(folder, name)
	file, err := d.Open(path + temporary)
	if err != nil {
		return err
	}
	if _, keep := held[name]; !keep {
		defer func() {
			if err != nil { // a part of a file would take the room of others
				_ = os.Remove(path + temporary)
			}
		}()
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Truncate(int64(len(data)))
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err = d.Rename(path+temporary, path); err != nil {
		return err
	}
	return d.SyncDir(folder)
}

// held is the room of a folder for the files of an end, in bytes.
var held = map[string]int64{exitFile: 16 << 10, noticeFile: 4 << 10, useFile: 4 << 10, faultFile: 4 << 10}

// HoldRoom holds back room for the end of a member: the exit, the notice, the use and a fault can
// be written once the file system is full. HoldRoom may be repeated.
func (f Folder) HoldRoom() error {
	for name, size := range held {
		if err := hold(f.path(name+temporary), size); err != nil {
			return err
		}
	}
	return nil
}

// hold makes a file with blocks for size bytes.
func hold(path string, size int64) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = unix.Fallocate(int(file.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		_, err = file.WriteAt(make([]byte, size), 0)
	}
	return errors.Join(err, file.Close())
}

// releaseRoom removes held room after the end.
func (f Folder) releaseRoom() {
	for name := range held {
		_ = os.Remove(f.path(name + temporary))
	}
}

// IsFull reports whether an error is due to a full file system, or to a quota.
func IsFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// syncDir makes the names of a folder durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
