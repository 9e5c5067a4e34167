package shim

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// made is a new folder.
func made(t *testing.T) Folder {
	t.Helper()
	f := Folder(filepath.Join(t.TempDir(), "a.0.0"))
	if is, err := f.Make(); err != nil || !is {
		t.Fatalf("made %t, %v", is, err)
	}
	return f
}

// TestAFailedWriteKeepsHeldRoom: the temporary file of an end stays after each failure, another
// temporary file does not.
func TestAFailedWriteKeepsHeldRoom(t *testing.T) {
	for _, c := range []struct {
		name string
		held bool
	}{{exitFile, true}, {noticeFile, true}, {useFile, true}, {faultFile, true}, {specFile, false}, {begunFile, false}} {
		for failAt := 2; failAt <= 5; failAt++ {
			f := made(t)
			if err := f.HoldRoom(); err != nil {
				t.Fatal(err)
			}
			if err := replace(&recorder{failAt: failAt}, string(f), c.name, []byte("new")); !errors.Is(err, errDisk) {
				t.Fatalf("%s, call %d: %v", c.name, failAt, err)
			}
			if _, err := os.Stat(f.path(c.name + temporary)); (err == nil) != c.held {
				t.Errorf("%s, a failure of call %d: the temporary file is there: %t, want %t", c.name, failAt, err == nil, c.held)
			}
		}
	}
}

// TestErrorsOfAFullFileSystem: room and quotas alike.
func TestErrorsOfAFullFileSystem(t *testing.T) {
	for err, want := range map[error]bool{unix.ENOSPC: true, unix.EDQUOT: true, unix.EROFS: false, unix.EIO: false, unix.ENOENT: false} {
		if got := IsFull(&os.PathError{Op: "write", Path: "/x", Err: err}); got != want {
			t.Errorf("%v: full %t, want %t", err, got, want)
		}
	}
	if IsFull(nil) {
		t.Error("success is a full file system")
	}
}

// TestRoomIsHeldWithoutFallocate: on a file system without the call.
func TestRoomIsHeldWithoutFallocate(t *testing.T) {
	root := t.TempDir()
	if err := unix.Mount("ramfs", root, "ramfs", 0, ""); err != nil {
		t.Skip("not permitted here: a file system of its own: ", err)
	}
	defer unix.Unmount(root, unix.MNT_DETACH)
	f := Folder(filepath.Join(root, "a"))
	if _, err := f.Make(); err != nil {
		t.Fatal(err)
	}
	if err := f.HoldRoom(); err != nil {
		t.Fatal(err)
	}
	for name, size := range held {
		if info, err := os.Stat(f.path(name + temporary)); err != nil || info.Size() < size {
			t.Errorf("%s: %v, want %d bytes", name, err, size)
		}
	}
}

// TestAFolderIsMadeOnceAndDurably: the second call makes no folder, and a name on no disk is a
// failure.
func TestAFolderIsMadeOnceAndDurably(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "a.0.0"))
	r := &recorder{}
	if is, err := f.makeOn(r); err != nil || !is || !slices.Equal(r.calls, []string{"sync the folder"}) {
		t.Errorf("made %t, %v, after %q", is, err, r.calls)
	}
	if is, err := f.Make(); err != nil || is {
		t.Errorf("the second time: made %t, %v", is, err)
	}
	if _, err := Folder(filepath.Join(t.TempDir(), "b")).makeOn(&recorder{failAt: 1}); !errors.Is(err, errDisk) {
		t.Errorf("a sync that fails: %v", err)
	}
	if _, err := Folder(filepath.Join(t.TempDir(), "none", "c")).Make(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder without a parent: %v", err)
	}
}

// TestTheFirstSpecStays: a repeated start of the agent writes no other spec.
func TestTheFirstSpecStays(t *testing.T) {
	f := made(t)
	for _, arg := range []string{"first", "second"} {
		if err := f.WriteSpec(Spec{Args: []string{arg}, Dir: "/"}); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := f.Spec(); err != nil || s.Args[0] != "first" {
		t.Errorf("the spec runs %q, %v", s.Args, err)
	}
}

// TestAFolderHasOneOwner: until the owner closes the file.
func TestAFolderHasOneOwner(t *testing.T) {
	f := made(t)
	owner, err := f.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Lock(); !errors.Is(err, ErrOwned) {
		t.Errorf("a second owner: %v", err)
	}
	owner.Close()
	again, err := f.Lock()
	if err != nil {
		t.Fatalf("after the end of the owner: %v", err)
	}
	again.Close()
}

// TestRecordsAreReadUpToTheirBound: with blanks behind the end.
func TestRecordsAreReadUpToTheirBound(t *testing.T) {
	f := made(t)
	text := `{"version":1,"code":3,"reason":"Completed","at":"2026-01-02T03:04:05Z"}`
	for beyond := range 2 {
		data := append([]byte(text), bytes.Repeat([]byte(" "), maxRecord-len(text)+beyond)...)
		if err := os.WriteFile(f.path(exitFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if e, err := f.Exit(); (err == nil) != (beyond == 0) || err == nil && e.Code != 3 {
			t.Errorf("%d bytes beyond the bound: code %d, %v", beyond, e.Code, err)
		}
	}
}

// TestNoSecondStart: a supervisor starts no command in a folder with a start, however the file
// looks.
func TestNoSecondStart(t *testing.T) {
	for name, text := range map[string]string{"whole": `{"version":1,"pid":7,"start":9,"bootID":"b"}`, "damaged": `{"ver`, "empty": ""} {
		f := made(t)
		if err := f.WriteSpec(Spec{Args: []string{"true"}, Dir: "/"}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.path(begunFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		lock, err := f.Lock()
		if err != nil {
			t.Fatal(err)
		}
		if err := supervise(f, inheritance{lock: int(lock.Fd()), begun: -1}); err == nil || !strings.Contains(err.Error(), "there was a start before") {
			t.Errorf("%s: %v", name, err)
		}
		lock.Close()
		if _, err := f.Exit(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: an exit: %v", name, err)
		}
	}
}

// TestAStartIsDurableBeforeTheAgentHearsOfIt: the pipe of the agent stays open where the file of the
// start cannot be written.
func TestAStartIsDurableBeforeTheAgentHearsOfIt(t *testing.T) {
	f := made(t)
	t.Chdir(string(f)) // the supervisor changes the folder
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	if err := f.WriteSpec(Spec{Args: []string{"true"}, Dir: "/"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(f.path(begunFile+temporary), 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := f.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	if err := supervise(f, inheritance{lock: int(lock.Fd()), begun: pipe[1]}); err == nil {
		t.Error("a supervisor without the file of the start goes on")
	}
	if _, err := unix.Read(pipe[0], make([]byte, 1)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("the agent's end of the pipe: %v, want an open pipe", err)
	}
	unix.Close(pipe[1])
}

// TestTheExitIsWrittenOnceThereIsRoom: the supervisor tries again after a failure.
func TestTheExitIsWrittenOnceThereIsRoom(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "late"))
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func(was *os.File) { os.Stderr = was }(os.Stderr)
	os.Stderr = write
	ended := make(chan error, 1)
	go func() {
		_, err := bufio.NewReader(read).ReadString('\n') // of the first failure
		ended <- errors.Join(err, os.Mkdir(string(f), 0o700))
	}()
	if err := f.writeEnd(Exit{Code: 6, Reason: Completed}, 1000, time.Millisecond); err != nil {
		t.Error(err)
	}
	if err := errors.Join(<-ended, write.Close(), read.Close()); err != nil {
		t.Fatal(err)
	}
	if e, err := f.Exit(); err != nil || e.Code != 6 {
		t.Errorf("the exit is %+v, %v", e, err)
	}
}

// TestTheReasonAndTheCodeOfAnEnd: as a shell numbers the code, and the hardest end is the reason.
func TestTheReasonAndTheCodeOfAnEnd(t *testing.T) {
	for name, c := range map[string]struct {
		status        unix.WaitStatus
		asked, forced bool
		code, signal  int
		reason        Reason
	}{
		"success":                      {0, false, false, 0, 0, Completed},
		"a failure":                    {3 << 8, false, false, 3, 0, Completed},
		"the greatest code":            {255 << 8, false, false, 255, 0, Completed},
		"a signal":                     {unix.WaitStatus(unix.SIGSEGV), false, false, 139, 11, Completed},
		"after a stop":                 {unix.WaitStatus(unix.SIGTERM), true, false, 143, 15, Stopped},
		"success after a stop":         {0, true, false, 0, 0, Stopped},
		"killed after a stop":          {unix.WaitStatus(unix.SIGKILL), true, true, 137, 9, Killed},
		"killed without a stop":        {unix.WaitStatus(unix.SIGKILL), false, true, 137, 9, Killed},
		"success after the kill began": {0, true, true, 0, 0, Killed},
	} {
		if e := exitOf(c.status, c.asked, c.forced); e.Code != c.code || e.Signal != c.signal || e.Reason != c.reason || e.At.IsZero() {
			t.Errorf("%s: code %d, signal %d, %s; want %d, %d, %s", name, e.Code, e.Signal, e.Reason, c.code, c.signal, c.reason)
		}
	}
}

// TestTheBoundsOfANotice: of the signal and of both times.
func TestTheBoundsOfANotice(t *testing.T) {
	most := MaxNotice.Milliseconds()
	for _, c := range []struct {
		n    Notice
		good bool
	}{
		{Notice{1, 1, 0}, true}, {Notice{64, most, most}, true}, {Notice{0, 1, 0}, false}, {Notice{65, 1, 0}, false}, {Notice{1, 0, 0}, false},
		{Notice{1, most + 1, 0}, false}, {Notice{1, 1, -1}, false}, {Notice{1, 1, most + 1}, false},
	} {
		if err := c.n.check(); (err == nil) != c.good {
			t.Errorf("%+v: %v", c.n, err)
		}
		n, err := ParseNoticed(fmt.Appendf(nil, `{"version":1,"signal":%d,"at":"2026-01-02T03:04:05Z"}`, c.n.Signal))
		if good := c.n.Signal >= 1 && c.n.Signal <= 64; (err == nil) != good || good && n.Signal != c.n.Signal {
			t.Errorf("the note of signal %d: %+v, %v", c.n.Signal, n, err)
		}
	}
	if err := (*Notice)(nil).check(); err != nil {
		t.Errorf("no notice: %v", err)
	}
	for name, c := range map[string]struct{ before, grace, want time.Duration }{
		"much grace":                   {10 * time.Second, time.Minute, 10 * time.Second},
		"exactly twice the time":       {10 * time.Second, 20 * time.Second, 10 * time.Second},
		"less: half of the grace":      {10 * time.Second, 19 * time.Second, 9500 * time.Millisecond},
		"no grace":                     {10 * time.Second, 0, 0},
		"a time longer than the grace": {time.Hour, time.Minute, 30 * time.Second},
	} {
		if got := (&Notice{Signal: 10, BeforeMillis: c.before.Milliseconds()}).lead(c.grace); got != c.want {
			t.Errorf("%s: SIGTERM follows after %s, want %s", name, got, c.want)
		}
	}
}

// TestMessagesOfFailedStarts: cut at their bound, and never within a character.
func TestMessagesOfFailedStarts(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"short":                    {"no", "no"},
		"at the bound":             {strings.Repeat("a", maxMessage), strings.Repeat("a", maxMessage)},
		"a byte more":              {strings.Repeat("a", maxMessage+1), strings.Repeat("a", maxMessage)},
		"a character at the bound": {strings.Repeat("a", maxMessage-1) + "ö", strings.Repeat("a", maxMessage-1)},
	} {
		e := notStarted(126, errors.New(c.text))
		if e.Message != c.want || !utf8.ValidString(e.Message) || e.Code != 126 || e.Reason != NotStarted {
			t.Errorf("%s: %d bytes, code %d, %s", name, len(e.Message), e.Code, e.Reason)
		}
	}
}

// TestTheSizeOfLogFiles: a file has a part of the share, and never less than the least size.
func TestTheSizeOfLogFiles(t *testing.T) {
	for name, c := range map[string]struct {
		most, limit int64
		files       int
		want        int64
	}{
		"as the spec says":       {1 << 20, 4 << 20, 4, 1 << 20},
		"a larger share":         {1 << 20, 8 << 20, 4, 1 << 20},
		"a smaller share":        {1 << 20, 1 << 20, 4, 256 << 10},
		"the least size":         {1 << 20, 4 * leastFile, 4, leastFile},
		"less than the least":    {1 << 20, 4*leastFile - 4, 4, leastFile},
		"no share":               {1 << 20, 0, 4, leastFile},
		"a spec below the least": {1 << 10, 4 << 10, 4, 1 << 10},
	} {
		if got := (&output{most: c.most, limit: c.limit, files: c.files}).fileMost(); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}

// TestTheShareIsLookedAtFromTimeToTime: after lookBytes of output, and after lookEvery, each time.
func TestTheShareIsLookedAtFromTimeToTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, o := newKept(t)
		o.room = func() (int64, int64) { return 0, 0 }
		share := func(bytes int64) {
			t.Helper()
			if err := f.WriteShare(Share{Bytes: bytes}); err != nil {
				t.Fatal(err)
			}
		}
		write := func(n int, want int64) {
			t.Helper()
			if _, err := o.Write(make([]byte, n)); err != nil {
				t.Fatal(err)
			}
			if o.limit != want {
				t.Errorf("after %d bytes the limit is %d, want %d", n, o.limit, want)
			}
		}
		share(3 << 20)
		write(1, 3<<20) // the first look
		for round := range int64(2) {
			share(2<<20 - round)
			write(lookBytes-1, 3<<20-round)
			write(1, 2<<20-round)
			share(3<<20 - 1 - round)
			time.Sleep(lookEvery - 1)
			write(1, 2<<20-round)
			time.Sleep(1)
			write(1, 3<<20-1-round)
		}
		if err := os.Remove(f.path(shareFile)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookEvery)
		write(1, 4<<20) // without a share the spec alone counts
	})
}

// TestTheOldestOutputIsTrimmed: exactly as many files as needed, and never the newest.
func TestTheOldestOutputIsTrimmed(t *testing.T) {
	for name, c := range map[string]struct {
		limit int64
		want  []int64
	}{
		"room for all":            {60, []int64{0, 10, 30}},
		"a byte too few":          {59, []int64{10, 30}},
		"room for the newer two":  {50, []int64{10, 30}},
		"a byte less":             {49, []int64{30}},
		"the newest is too large": {1, []int64{30}},
		"no room":                 {0, []int64{30}},
	} {
		f := made(t)
		for _, file := range []struct{ begin, size int64 }{{0, 10}, {10, 20}, {30, 30}} {
			if err := os.WriteFile(f.path(logName(file.begin)), make([]byte, file.size), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f.TrimLogs(c.limit)
		if left, err := f.logs(); err != nil || !slices.Equal(left, c.want) {
			t.Errorf("%s: the files at %v are left, %v; want %v", name, left, err, c.want)
		}
		o := &output{folder: f, files: 3, begin: 30}
		o.trim(c.limit)
		if left, err := f.logs(); err != nil || !slices.Equal(left, c.want) {
			t.Errorf("%s, of a writer: the files at %v are left, %v; want %v", name, left, err, c.want)
		}
	}
}
