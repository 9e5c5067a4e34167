package shim

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"
)

// kept is the output of a folder, with the offset of the first byte.
func kept(t *testing.T, f Folder) (from int64, data []byte) {
	t.Helper()
	piece := make([]byte, 64<<10)
	for at := int64(0); ; {
		begin, n, err := f.ReadLog(at, piece)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return from, data
		}
		if len(data) == 0 {
			from = begin
		}
		data = append(data, piece[:n]...)
		at = begin + int64(n)
	}
}

// newKept is a new folder with an output of 4 files of 1 MiB.
func newKept(t *testing.T) (Folder, *output) {
	t.Helper()
	f := Folder(filepath.Join(t.TempDir(), "a.0.0"))
	if _, err := f.Make(); err != nil {
		t.Fatal(err)
	}
	o, err := newOutput(f, 1<<20, 4)
	if err != nil {
		t.Fatal(err)
	}
	return f, o
}

// TestOutputGivesWayWhereThereIsNoRoom: with little room a member keeps the newest output alone,
// with less the output is lost, and later output has the right offset.
func TestOutputGivesWayWhereThereIsNoRoom(t *testing.T) {
	f, o := newKept(t)
	free := int64(1 << 30)
	o.room = func() (int64, int64) { return 1 << 30, free }
	at := int64(0)
	write := func(letter string) {
		t.Helper()
		for range 64 { // 2 MiB
			piece := bytes.Repeat([]byte(letter), 32<<10)
			if n, err := o.Write(piece); n != len(piece) || err != nil {
				t.Fatalf("a write of %d bytes: %d, %v", len(piece), n, err)
			}
			at += int64(len(piece))
		}
		o.looked = time.Time{}
	}
	write("a")
	if sum := f.LogBytes(); sum != 2<<20 {
		t.Errorf("with room %d bytes are kept, want all", sum)
	}
	free = 50 << 20 // the floor is 102 MiB
	write("b")
	if sum := f.LogBytes(); sum > 2*shortBytes || sum == 0 {
		t.Errorf("with little room %d bytes are kept, want at most %d", sum, 2*shortBytes)
	}
	free = 1 << 20
	write("c")
	before := f.LogBytes()
	write("c")
	if after := f.LogBytes(); after != before {
		t.Errorf("without room the output has grown from %d to %d bytes", before, after)
	}
	free = 1 << 30
	begin := at
	write("d")
	from, data := kept(t, f)
	if at := bytes.IndexByte(data, 'd'); at < 0 || !bytes.Equal(data[at:], bytes.Repeat([]byte("d"), 2<<20)) {
		t.Errorf("once there is room again %d bytes are kept from %d, want all new ones", len(data), from)
	}
	if got, n, err := f.ReadLog(begin, make([]byte, 1)); err != nil || n != 1 || got != begin {
		t.Errorf("the new output begins at %d, %d bytes, %v; want %d", got, n, err, begin)
	}
}

// TestOutputKeepsToTheShare: the agent makes the share smaller while the command writes.
func TestOutputKeepsToTheShare(t *testing.T) {
	f, o := newKept(t)
	o.room = func() (int64, int64) { return 0, 0 }
	piece := make([]byte, 32<<10)
	for _, c := range []struct{ share, most, least int64 }{{8 << 20, 4 << 20, 3 << 20}, {1 << 20, 1 << 20, 512 << 10}, {64 << 10, 80 << 10, 32 << 10}, {8 << 20, 4 << 20, 3 << 20}} {
		if err := f.WriteShare(Share{Tenant: "ml", Bytes: c.share}); err != nil {
			t.Fatal(err)
		}
		o.looked = time.Time{}
		for range 256 { // 8 MiB
			if _, err := o.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		if sum := f.LogBytes(); sum > c.most || sum < c.least {
			t.Errorf("with a share of %d bytes %d are kept, want %d to %d", c.share, sum, c.least, c.most)
		}
	}
}

// TestAFullFileSystemStopsNoCommand: the writer of a command never waits, and writes again once
// there is room.
func TestAFullFileSystemStopsNoCommand(t *testing.T) {
	root := small(t, 1<<20)
	f := Folder(filepath.Join(root, "a.0.0"))
	if _, err := f.Make(); err != nil {
		t.Fatal(err)
	}
	o, err := newOutput(f, 16<<20, 4)
	if err != nil {
		t.Fatal(err)
	}
	o.room = func() (int64, int64) { return 0, 0 } // the file system speaks first
	piece := make([]byte, 32<<10)
	for range 128 { // 4 MiB
		if n, err := o.Write(piece); n != len(piece) || err != nil {
			t.Fatalf("a write on a full file system: %d, %v", n, err)
		}
	}
	o.looked = time.Time{}
	if _, err := o.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	if _, data := kept(t, f); !bytes.HasSuffix(data, []byte("last words")) {
		t.Errorf("once there is room the output ends with %q", data[max(0, len(data)-20):])
	}
}
