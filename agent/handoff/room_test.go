package handoff_test

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/musterd/muster/agent/handoff"
)

// limited is the operating system's, but no file can be larger than its limit.
type limited struct{ most int64 }

func (l *limited) WriteFile(path string, data []byte, mode fs.FileMode) error {
	return os.WriteFile(path, data, mode)
}
func (l *limited) Rename(from, to string) error { return os.Rename(from, to) }
func (l *limited) Remove(path string) error     { return os.Remove(path) }

func (l *limited) Allocate(path string, size int64) error {
	if size > l.most {
		return &fs.PathError{Op: "allocate", Path: path, Err: syscall.ENOSPC}
	}
	return nil
}

// TestRoomDoesNotComeAndGo: a folder that was short of room has it once there is
// some to spare; one that was not does not need that.
func TestRoomDoesNotComeAndGo(t *testing.T) {
	const room = handoff.DefaultRoom
	disk := &limited{}
	d, err := handoff.Open(t.TempDir(), handoff.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		most int64
		want bool
	}{{room, true}, {room - 1, false}, {room, false}, {room + 4096, false}, {2 * room, true}, {room, true}, {0, false}} {
		disk.most = step.most
		if err := d.Reserve(); (err == nil) != step.want || d.Reserved() != step.want || err != nil && !errors.Is(err, handoff.ErrNoRoom) {
			t.Errorf("step %d, %d bytes: %v, reserved %t", i, step.most, err, d.Reserved())
		}
	}
}
