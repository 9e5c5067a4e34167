package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// recorder is a file system that notes each call, and fails at the call with the number failAt.
type recorder struct {
	host
	calls  []string
	failAt int
}

var errDisk = errors.New("the disk fails")

func (r *recorder) note(format string, args ...any) error {
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
	if len(r.calls) == r.failAt {
		return errDisk
	}
	return nil
}

func (r *recorder) Open(path string) (diskFile, error) {
	if err := r.note("open %s", filepath.Base(path)); err != nil {
		return nil, err
	}
	file, err := r.host.Open(path)
	return recorded{file, r}, err
}

func (r *recorder) Rename(from, to string) error {
	if err := r.note("rename %s %s", filepath.Base(from), filepath.Base(to)); err != nil {
		return err
	}
	return r.host.Rename(from, to)
}

func (r *recorder) SyncDir(path string) error {
	if err := r.note("sync the folder"); err != nil {
		return err
	}
	return r.host.SyncDir(path)
}

type recorded struct {
	diskFile
	r *recorder
}

func (f recorded) Write(p []byte) (int, error) {
	if err := f.r.note("write"); err != nil {
		return 0, err
	}
	return f.diskFile.Write(p)
}

func (f recorded) Truncate(size int64) error {
	if err := f.r.note("truncate"); err != nil {
		return err
	}
	return f.diskFile.Truncate(size)
}

func (f recorded) Sync() error {
	if err := f.r.note("sync"); err != nil {
		return err
	}
	return f.diskFile.Sync()
}

func (f recorded) Close() error {
	err := f.r.note("close")
	return errors.Join(err, f.diskFile.Close())
}

// TestAFileIsDurableBeforeTheName: after a power cut a file has the old bytes or all of the new
// bytes.
func TestAFileIsDurableBeforeTheName(t *testing.T) {
	r := &recorder{}
	if err := replace(r, t.TempDir(), "exit", []byte("new")); err != nil {
		t.Fatal(err)
	}
	want := []string{"open exit.tmp", "write", "truncate", "sync", "close", "rename exit.tmp exit", "sync the folder"}
	if !slices.Equal(r.calls, want) {
		t.Errorf("a file is replaced by\n%s\nwant\n%s", strings.Join(r.calls, "\n"), strings.Join(want, "\n"))
	}
	for at := range want {
		t.Run("a failure of "+want[at], func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "exit")
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			r := &recorder{failAt: at + 1}
			if err := replace(r, folder, "exit", []byte("new")); !errors.Is(err, errDisk) {
				t.Errorf("the write returns %v, want the failure", err)
			}
			data, err := os.ReadFile(path)
			if renamed := slices.Contains(want[at:], "rename exit.tmp exit"); err != nil || renamed && string(data) != "old" || !renamed && string(data) != "new" {
				t.Errorf("the file has %q, %v", data, err)
			}
		})
	}
}

// small mounts a file system of so many bytes.
func small(t *testing.T, bytes int) string {
	t.Helper()
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Skip("not permitted here: a file system of its own: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// fill takes all room of a file system.
func fill(t *testing.T, folder string) {
	t.Helper()
	file, err := os.Create(filepath.Join(folder, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for err == nil {
		_, err = file.Write(make([]byte, 64<<10))
	}
	for err = nil; err == nil; {
		_, err = file.Write(make([]byte, 1))
	}
	if !IsFull(err) {
		t.Fatal(err)
	}
}

// TestTheEndOfAMemberHasRoom: on a full file system the exit, the notice, the use and a fault are
// written, and a file without held room is not.
func TestTheEndOfAMemberHasRoom(t *testing.T) {
	root := small(t, 1<<20)
	f := Folder(filepath.Join(root, "a.0.0"))
	if _, err := f.Make(); err != nil {
		t.Fatal(err)
	}
	if err := f.HoldRoom(); err != nil {
		t.Fatal(err)
	}
	fill(t, root)
	if err := f.WriteSpec(Spec{Args: []string{"x"}, Dir: "/"}); !IsFull(err) {
		t.Errorf("a spec on a full file system: %v, want that there is no room", err)
	}
	long := Exit{Code: 3, Reason: Completed, Message: strings.Repeat("\x01", 2<<10), At: time.Now()}
	if err := errors.Join(f.write(noticeFile, Noticed{Version: version, Signal: 10}), f.write(useFile, Use{Version: version, CPUMillis: 5}), f.SettleEpilog("fault"), f.WriteExit(long)); err != nil {
		t.Fatal(err)
	}
	e, err := f.Exit()
	if err != nil || e.Code != 3 || e.Message != long.Message {
		t.Errorf("the exit is %d, %d bytes: %v", e.Code, len(e.Message), err)
	}
	if n, err := f.Noticed(); err != nil || n.Signal != 10 || f.Fault() != "fault" {
		t.Errorf("the notice is %+v, %v, the fault %q", n, err, f.Fault())
	}
	if err := os.Remove(filepath.Join(root, "filler")); err != nil {
		t.Fatal(err)
	}
	if err := f.HoldRoom(); err != nil {
		t.Fatal(err)
	}
	f.releaseRoom()
	if left, err := filepath.Glob(f.path("*" + temporary)); err != nil || len(left) > 0 {
		t.Errorf("after the end room is held by %v, %v", left, err)
	}
}

// TestTheOutputGivesWayToTheEnd: a folder of an older version has no held room.
func TestTheOutputGivesWayToTheEnd(t *testing.T) {
	root := small(t, 1<<20)
	f := Folder(filepath.Join(root, "a.0.0"))
	if _, err := f.Make(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.path(logName(0)), make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	fill(t, root)
	if err := f.writeEnd(Exit{Code: 4, Reason: Completed}, 1, 0); err != nil {
		t.Errorf("beside output that may go: %v", err)
	}
	if e, err := f.Exit(); err != nil || e.Code != 4 || f.LogBytes() != 0 {
		t.Errorf("the exit is %+v, %v, and %d bytes of output are left", e, err, f.LogBytes())
	}
	// Without output that may go, the supervisor ends all the same.
	other := Folder(filepath.Join(root, "b.0.0"))
	if err := os.Remove(filepath.Join(root, "filler")); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Make(); err != nil {
		t.Fatal(err)
	}
	fill(t, root)
	if err := other.writeEnd(Exit{Code: 4, Reason: Completed}, 2, 0); !IsFull(err) {
		t.Errorf("without any room: %v", err)
	}
	if err := os.Remove(filepath.Join(root, "filler")); err != nil {
		t.Fatal(err)
	}
	if err := other.writeEnd(Exit{Code: 5, Reason: Completed}, 1, 0); err != nil {
		t.Errorf("once there is room: %v", err)
	}
}
