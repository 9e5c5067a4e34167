package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The files of a folder.
const (
	specFile    = "spec"    // Spec, by the agent
	lockFile    = "lock"    // locked while a shim or an agent owns the folder
	begunFile   = "begun"   // Process of the shim: a start may have happened
	startedFile = "started" // Process of the command
	exitFile    = "exit"    // Exit: nothing of the member runs any more
	noticeFile  = "notice"  // Noticed: the command has got the signal of the spec's Notice
	socketFile  = "socket"  // requests to the shim
)

// Folder is the folder of one start of one member. Its methods may block on the
// disk. Files are written whole and durably, or not at all.
type Folder string

// Make makes the folder if it is missing, durably. made reports whether this call
// has made it.
func (f Folder) Make() (made bool, err error) { return f.makeOn(host{}) }

func (f Folder) makeOn(d disk) (made bool, err error) {
	if err := os.Mkdir(string(f), 0o700); errors.Is(err, fs.ErrExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, d.SyncDir(filepath.Dir(string(f)))
}

// WriteSpec writes the spec unless the folder has one.
func (f Folder) WriteSpec(s Spec) error {
	if _, err := os.Stat(f.path(specFile)); err == nil {
		return nil
	}
	s.Version = version
	return f.write(specFile, s)
}

// Spec reads the spec.
func (f Folder) Spec() (Spec, error) { return read(f, specFile, MaxSpec, ParseSpec) }

// Begun returns the shim that has taken the folder; fs.ErrNotExist where none has.
func (f Folder) Begun() (Process, error) { return read(f, begunFile, maxRecord, ParseProcess) }

// Started returns the command's process; fs.ErrNotExist where it was not started.
func (f Folder) Started() (Process, error) { return read(f, startedFile, maxRecord, ParseProcess) }

// Exit returns how the member ended; fs.ErrNotExist where it has not.
func (f Folder) Exit() (Exit, error) { return read(f, exitFile, maxRecord, ParseExit) }

// Noticed returns when the command got the signal of the spec's Notice; fs.ErrNotExist
// where it has not.
func (f Folder) Noticed() (Noticed, error) { return read(f, noticeFile, maxRecord, ParseNoticed) }

// WriteExit writes how the member ended. Only the owner of the lock may call it.
func (f Folder) WriteExit(e Exit) error {
	e.Version = version
	return f.write(exitFile, e)
}

// ErrOwned is wrapped by Lock where another process owns the folder.
var ErrOwned = errors.New("another process owns the folder")

// Lock takes the folder. The owner closes the file to give the folder back, or
// hands the open file to a shim.
func (f Folder) Lock() (*os.File, error) {
	file, err := os.OpenFile(f.path(lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", f, ErrOwned)
		}
		return nil, fmt.Errorf("%s: lock: %w", f, err)
	}
	return file, nil
}

func (f Folder) path(name string) string { return filepath.Join(string(f), name) }

// write replaces a file durably.
func (f Folder) write(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return replace(host{}, string(f), name, data)
}

func read[T any](f Folder, name string, most int64, parse func([]byte) (T, error)) (T, error) {
	var zero T
	info, err := os.Stat(f.path(name))
	if err != nil {
		return zero, err
	}
	if info.Size() > most {
		return zero, fmt.Errorf("%s: %d bytes, want at most %d", f.path(name), info.Size(), most)
	}
	data, err := os.ReadFile(f.path(name))
	if err != nil {
		return zero, err
	}
	value, err := parse(data)
	if err != nil {
		return zero, fmt.Errorf("%s: %w", f, err)
	}
	return value, nil
}
