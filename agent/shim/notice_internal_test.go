package shim

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Stops, evictions and the time of the notice come in any order and number: the command
// gets the signal of its notice at most once, and never after its end. The file of the
// notice follows each signal, so the test removes the file and looks for another one.
func TestNoCommandGetsItsNoticeTwice(t *testing.T) {
	command := exec.Command("sleep", "60")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	sent := 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		f := Folder(t.TempDir())
		// The default action of SIGWINCH is none.
		w := watcher{folder: f, notice: &Notice{Signal: int(unix.SIGWINCH), BeforeMillis: 1 + random.Int64N(5000)}, pid: command.Process.Pid, group: command.Process.Pid, alarm: stoppedTimer(), term: stoppedTimer()}
		signals, ended := 0, false
		for range 20 {
			switch grace := time.Hour.Milliseconds() - random.Int64N(1000); random.IntN(8) {
			case 0, 1:
				w.announce()
			case 2, 3:
				w.obey(request{Stop: true, Notice: true, GraceMillis: grace})
			case 4:
				w.obey(request{Stop: true, GraceMillis: grace})
			case 5:
				w.terminate()
			case 6:
				w.obey(request{Signal: int(unix.SIGCONT)})
			case 7:
				w.gone = w.gone || random.IntN(3) == 0
			}
			_, err := f.Noticed()
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				t.Fatal(err)
			case ended:
				t.Fatalf("seed %d: a signal after the end of the command", seed)
			default:
				signals++
				if err := os.Remove(f.path(noticeFile)); err != nil {
					t.Fatal(err)
				}
			}
			ended = w.gone
		}
		if signals > 1 {
			t.Fatalf("seed %d: the command got %d signals, want at most 1", seed, signals)
		}
		sent += signals
		w.alarm.Stop()
		w.term.Stop()
	}
	if sent == 0 {
		t.Error("no seed has sent a signal: the test shows nothing")
	}
}
