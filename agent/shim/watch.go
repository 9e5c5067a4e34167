package shim

import (
	"time"

	"golang.org/x/sys/unix"
)

// watch follows the command until nothing of it runs. When the command itself has
// ended, the processes that it has started are killed at once.
func watch(f Folder, s *Spec, command started, work string, requests <-chan request, further *sessions) Exit {
	ends := make(chan ended)
	go reap(command.pid, further, ends)
	w := watcher{folder: f, notice: s.Notice, tty: s.TTY, pid: command.pid, group: command.group, alarm: stoppedTimer(), term: stoppedTimer(), hangUp: stoppedTimer()}
	announce := stoppedTimer()
	if n := s.Notice; n != nil && n.AfterMillis > 0 {
		announce.Reset(time.Duration(n.AfterMillis) * time.Millisecond)
	}
	for {
		select {
		case e, more := <-ends:
			if !more {
				return exitOf(w.status, w.asked, w.forced)
			}
			if e.pid == w.pid {
				w.status, w.gone = e.status, true
				if hasChildren() {
					killAll(work)
					w.alarm.Reset(killWait)
				}
			}
		case r := <-requests:
			w.obey(r)
		case <-announce.C:
			if !w.asked {
				w.announce()
			}
		case <-w.term.C:
			w.terminate()
		case <-w.hangUp.C:
			w.endTerminal()
		case <-w.alarm.C: // the grace is over, or something has outlived a round
			w.forced = w.forced || !w.gone
			killAll(work)
			w.alarm.Reset(killWait)
		}
	}
}

// watcher is the state of watch, whose goroutine owns it.
type watcher struct {
	folder Folder
	notice *Notice // nil for none
	tty    bool    // the command has a terminal
	pid    int     // of the command
	group  int     // the command's process group

	status    unix.WaitStatus
	gone      bool // the command itself has ended
	asked     bool // for its end
	announced bool // it got the signal of notice
	forced    bool // it was killed

	terminated bool        // it got SIGTERM
	term       *time.Timer // when it gets SIGTERM, where that is later than the stop
	deadline   time.Time   // of the end; set where asked is
	alarm      *time.Timer // at the deadline
	hangUp     *time.Timer // the next look of endTerminal
}

// obey carries out a request.
func (w *watcher) obey(r request) {
	if !r.Stop {
		w.signal(unix.Signal(r.Signal))
		return
	}
	now := time.Now()
	grace := time.Duration(r.GraceMillis) * time.Millisecond
	wait := time.Duration(0)
	switch {
	case !r.Notice || w.notice == nil || w.terminated || w.notice.Signal == int(unix.SIGTERM):
	case !w.asked && w.announce():
		wait = w.notice.lead(grace)
	case w.asked: // SIGTERM follows at its time
		wait = -1
	}
	if wait > 0 {
		w.term.Reset(wait)
	} else if wait == 0 {
		w.terminate()
	}
	if at := now.Add(grace); !w.asked || at.Before(w.deadline) {
		w.deadline = at
		w.alarm.Reset(time.Until(at))
	}
	w.asked = true
}

// announce sends the signal of the notice, and reports whether it did. No command gets the
// signal twice: one shim supervises a command for its whole life.
func (w *watcher) announce() bool {
	if w.announced || w.gone {
		return false
	}
	w.announced = true
	w.signal(unix.Signal(w.notice.Signal))
	// Without the file (a full disk) the signal is not reported.
	_ = w.folder.write(noticeFile, Noticed{Version: version, Signal: w.notice.Signal, At: time.Now()})
	return true
}

// terminate sends SIGTERM, once.
func (w *watcher) terminate() {
	if w.terminated {
		return
	}
	w.terminated = true
	w.signal(unix.SIGTERM)
	w.endTerminal()
}

// endTerminal sends SIGHUP to a command at a terminal that ignores SIGTERM, as interactive
// shells do, and again where it has not ended: while bash starts a program, it does not
// ignore SIGTERM, and may miss a SIGHUP.
func (w *watcher) endTerminal() {
	if !w.tty || w.gone {
		return
	}
	if ignores(w.pid, unix.SIGTERM) {
		w.signal(unix.SIGHUP)
	}
	w.hangUp.Reset(hangUpEvery)
}

// hangUpEvery is the time between two looks of endTerminal.
const hangUpEvery = 500 * time.Millisecond

// signal sends a signal to the command and its process group, whose number may be that of
// others once the command has ended.
func (w *watcher) signal(s unix.Signal) {
	if !w.gone {
		_ = unix.Kill(-w.group, s)
	}
}

// stoppedTimer is a timer that never fires unless it is reset.
func stoppedTimer() *time.Timer {
	t := time.NewTimer(0)
	<-t.C
	return t
}
