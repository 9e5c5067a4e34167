package handoff

import (
	"errors"
	"fmt"
	"path/filepath"
)

// RoomFile is a file of the folder that holds nothing. On a full disk the files
// of promised grants use its room. It is no assignment file.
const RoomFile = ".room"

// DefaultRoom is the size of RoomFile, in bytes: 128 members with at most 4 KiB
// of environment and 4 KiB of document each.
const DefaultRoom = 1 << 20

// roomSlack is the space that has to be free beside the room, in bytes, before
// a folder that was short of room counts as having it: a node on a disk that is
// nearly full must not come and go with each release.
const roomSlack = 64 << 10

// roomStep is the least part of the room that is given up at one time, in bytes.
const roomStep = 16 << 10

// ErrNoRoom means that no room can be kept for the files of promised grants.
var ErrNoRoom = errors.New("no room for assignment files")

// Reserve makes sure that the room is there. Every error wraps ErrNoRoom: a
// folder that cannot be written has no room either.
func (d *Dir) Reserve() error {
	size := d.room
	if d.short {
		size += roomSlack
	}
	err := d.fs.Allocate(d.roomPath(), size)
	if err == nil && size > d.room { // the slack is for everybody
		err = d.fs.Allocate(d.roomPath(), d.room)
	}
	if err != nil {
		d.reserved, d.short = false, true
		return fmt.Errorf("%w: keep %d bytes free for them in %s: %w", ErrNoRoom, size, d.path, err)
	}
	d.kept, d.reserved, d.short = d.room, true, false
	return nil
}

// Reserved reports whether the last Reserve succeeded and nothing has used the
// room since, but for the slack.
func (d *Dir) Reserved() bool { return d.reserved }

// spend gives up room for n bytes. It reports false if no room was left.
func (d *Dir) spend(n int) bool {
	if d.kept == 0 {
		return false
	}
	left := max(0, d.kept-max(roomStep, int64(n)))
	if err := d.fs.Allocate(d.roomPath(), left); err != nil && !diskFull(err) {
		return false
	}
	d.kept, d.reserved, d.short = left, false, true
	return true
}

func (d *Dir) roomPath() string { return filepath.Join(d.path, RoomFile) }
