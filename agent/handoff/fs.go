package handoff

import "os"

// FS is how the files of a folder are changed; they are read where they are. All
// calls may block on the disk. A Dir uses it from one goroutine at a time.
type FS interface {
	// WriteFile makes a file, or replaces what is in it, which a failure may
	// leave half done. Everybody may read it.
	WriteFile(path string, data []byte) error
	// Rename moves a file over another, atomically.
	Rename(from, to string) error
	// Remove takes a file away; an absent one is fs.ErrNotExist.
	Remove(path string) error
}

// osFS is the operating system's.
type osFS struct{}

func (osFS) WriteFile(path string, data []byte) error { return os.WriteFile(path, data, 0o644) }
func (osFS) Rename(from, to string) error             { return os.Rename(from, to) }
func (osFS) Remove(path string) error                 { return os.Remove(path) }
