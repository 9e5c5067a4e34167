package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/bounds"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/agent/users"
)

// Unit is one transient service.
type Unit struct {
	Name string
	// UID and GID are the user of the shim: the agent's.
	UID, GID uint32
	// Args is the command line of the shim; Files are its standard input, output and
	// error.
	Args   []string
	Files  [passedFiles]*os.File
	Bounds bounds.Bounds
}

// Script is one run of a script of the host.
type Script struct {
	Unit string // its name
	Path string
	Env  []string
	// Limit is the time after which the script is killed.
	Limit time.Duration
}

// Starter starts transient services. Its methods may block until ctx ends.
type Starter interface {
	// Start starts a shim, and returns once its program runs.
	Start(ctx context.Context, u Unit) error
	// Run runs a script as root, and returns at its end.
	Run(ctx context.Context, s Script) error
}

// Server is the helper.
type Server struct {
	// Users is the operator's table, which the agent cannot write.
	Users *users.Table
	// Attachers is the table of the users that may attach processes of their own; nil: none.
	Attachers *users.Table
	// UID and GID are the agent's user: no other user is served.
	UID, GID uint32
	// Scripts are the paths of the prolog and the epilog, by name; one without a path is
	// not run.
	Scripts map[string]string
	// Program is that of the shim.
	Program string
	Starter Starter
	// Controllers are those that members get.
	Controllers bounds.Controllers
	Log         *slog.Logger
}

// mostCalls bounds the requests at one time: the agent starts a few members at once. Silent
// connections have no part of this bound, see shim.Silent.
const mostCalls = 32

// callTimeout bounds a request. It is shorter than the agent's patience.
const callTimeout = 20 * time.Second

// Serve answers requests until ctx ends or the listener fails.
func (s *Server) Serve(ctx context.Context, l *net.UnixListener) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	of := callers{turns: make(chan struct{}, mostCalls)}
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		silent, refused := &of.others, s.isAgent(conn)
		if refused == nil {
			silent = &of.agent
		}
		leave := silent.Enter(conn)
		go func() {
			defer conn.Close()
			m := message{refused: refused}
			m.data, m.files, m.failed = receive(conn)
			leave()
			for _, f := range m.files {
				defer f.Close()
			}
			if refused == nil {
				select {
				case of.turns <- struct{}{}:
					defer func() { <-of.turns }()
				case <-ctx.Done():
					return
				}
			}
			s.serve(ctx, conn, m)
		}()
	}
}

// callers are the connections of a server: those of the agent, those of other users, which get a
// refusal alone, and the turns of requests.
type callers struct {
	agent, others shim.Silent
	turns         chan struct{}
}

// message is a request as received.
type message struct {
	data    []byte
	files   []*os.File
	failed  error // while it was received
	refused error // why the caller is not served; nil for the agent
}

// serve answers one request.
func (s *Server) serve(ctx context.Context, conn *net.UnixConn, m message) {
	if err := conn.SetDeadline(time.Now().Add(callTimeout + MaxScript + time.Second)); err != nil {
		return
	}
	a := answer{Version: version, Controllers: s.Controllers}
	if refused, err := s.take(ctx, m); refused != nil {
		a.Refused = refused.Error()
		s.Log.Warn("start_refused", "error", refused)
	} else if err != nil {
		a.Failed = err.Error()
		s.Log.Error("start_failed", "error", err)
	}
	data, err := json.Marshal(a)
	if err != nil {
		return
	}
	_, _ = conn.Write(data)
}

// isAgent returns an error unless the caller has the agent's user.
func (s *Server) isAgent(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return failed
	case peer.Uid != s.UID:
		return fmt.Errorf("user %d is not the agent's, %d", peer.Uid, s.UID)
	}
	return nil
}

// take carries one request out.
func (s *Server) take(ctx context.Context, m message) (refused, err error) {
	if m.failed != nil {
		return nil, m.failed
	}
	if m.refused != nil {
		return m.refused, nil
	}
	r, err := parseRequest(m.data)
	switch {
	case err != nil:
		return err, nil
	case r.Signal != nil:
		return s.signal(r.Signal)
	case r.Folder == "":
		return nil, nil
	case r.Script != "":
		return s.script(ctx, &r)
	case len(m.files) != passedFiles:
		return fmt.Errorf("%d files come with the request, want %d", len(m.files), passedFiles), nil
	}
	account, err := s.Users.Of(r.Tenant)
	if err != nil {
		return err, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	f := shim.Folder(r.Folder)
	u := Unit{Name: UnitOf(f), UID: s.UID, GID: s.GID, Args: shim.Service(s.Program, f, account.ID), Files: [passedFiles]*os.File(m.files), Bounds: r.Bounds}
	if err := s.Starter.Start(ctx, u); err != nil {
		return nil, fmt.Errorf("start %s: %w", u.Name, err)
	}
	s.Log.Info("started", "unit", u.Name, "tenant", string(r.Tenant), "user", account.Name)
	return nil, nil
}

// script runs a script of the host. The paths are those of the operator's file: the agent
// chooses none.
func (s *Server) script(ctx context.Context, r *request) (refused, err error) {
	path := s.Scripts[r.Script]
	if path == "" {
		return fmt.Errorf("work.%s: the helper's configuration names no script; restart muster-launch.service after a change", r.Script), nil
	}
	limit := time.Duration(r.LimitMillis) * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, callTimeout+limit)
	defer cancel()
	return nil, s.Starter.Run(ctx, Script{Unit: ScriptUnitOf(r.Script, shim.Folder(r.Folder)), Path: path, Env: r.Env, Limit: limit})
}

// signal sends a signal to a process. The agent names it; the user of the process has to be
// in the operator's tables, as for work that is started.
func (s *Server) signal(g *signal) (refused, err error) {
	p, uid, err := shim.Judge(g.PID, "")
	switch {
	case errors.Is(err, shim.ErrNoProcess), err == nil && p.Start != g.Start:
		return nil, nil // it has ended
	case err != nil:
		return nil, err
	case !s.Users.IsUser(uid) && !s.Attachers.IsUser(uid):
		return fmt.Errorf("process %d belongs to user %d, whom neither work.users nor attach.users names", g.PID, uid), nil
	}
	return nil, p.Signal(syscall.Signal(g.Number))
}

// receive reads one message and its files.
func receive(conn *net.UnixConn) (data []byte, files []*os.File, err error) {
	data, rights := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4*passedFiles))
	n, m, flags, _, err := conn.ReadMsgUnix(data, rights)
	if err != nil {
		return nil, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil {
		return nil, nil, err
	}
	for i := range messages {
		descriptors, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range descriptors {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		return nil, files, errors.New("the request is too long, or has too many files")
	}
	return data[:n], files, nil
}
