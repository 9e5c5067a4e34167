// Package attach lets launchers outside of Muster attach processes to grants over a local
// socket, and report how the work has ended. It judges each caller by the user that the
// kernel names, and lets a caller attach its own processes and cgroups alone. It decides
// nothing about grants.
package attach

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/users"
	"github.com/musterd/muster/resource"
)

// Owner is the agent. Its methods may block until ctx ends.
type Owner interface {
	// Tenant is the tenant of a grant that has the member here; ok is false where there is
	// no grant to attach to.
	Tenant(ctx context.Context, tx resource.TxID, member int) (tenant resource.TenantID, ok bool, err error)
	// Attach takes a change, and returns once it is durable. Its errors may wrap those of
	// run.Runner.AttachExternal, or ErrNoGrant.
	Attach(ctx context.Context, tx resource.TxID, member int, a run.Attachment) error
}

// ErrNoGrant: the grant has ended between both calls of Owner.
var ErrNoGrant = errors.New("the grant has ended")

// Server answers at the socket.
type Server struct {
	Owner Owner
	// Users has the user of each tenant; nil: root and the agent's own user alone attach.
	Users  *users.Table
	BootID string
	// Hierarchy is the folder of the unified hierarchy; "" has none.
	Hierarchy string
	Log       *slog.Logger
}

// The paths of the requests.
const (
	attachPath = "/v1/attach"
	donePath   = "/v1/done"
)

// The times of a connection are bounded: every user of the host may connect.
const (
	readTimeout = 5 * time.Second
	callTimeout = 30 * time.Second
)

type peerKey struct{}

// Serve answers requests until ctx ends or the listener fails.
func (s *Server) Serve(ctx context.Context, l *net.UnixListener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+attachPath, s.handle(false))
	mux.HandleFunc("POST "+donePath, s.handle(true))
	server := &http.Server{
		Handler: mux, ReadTimeout: readTimeout, WriteTimeout: callTimeout + readTimeout, MaxHeaderBytes: 4096,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if b, ok := c.(*bounded); ok {
				ctx = context.WithValue(ctx, peerKey{}, b.uid)
			}
			return ctx
		},
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	server.SetKeepAlivesEnabled(false) // each request takes a turn of its user
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(newListener(l)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *Server) handle(done bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
		defer cancel()
		status, a := http.StatusOK, answer{}
		if err := s.take(ctx, r, done); err != nil {
			status, a.Error = statusOf(err), err.Error()
			s.Log.Debug("attach_refused", "status", status, "error", err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(a) // the caller may be gone
	}
}

// statusOf is the status of an answer. 503 says that a repeated request may succeed.
func statusOf(err error) int {
	var r *Refused
	switch {
	case errors.As(err, &r):
		return r.Status
	case errors.Is(err, run.ErrStarted), errors.Is(err, run.ErrDone):
		return http.StatusConflict
	case errors.Is(err, run.ErrMany):
		return http.StatusUnprocessableEntity
	case errors.Is(err, ErrNoGrant):
		return http.StatusNotFound
	}
	return http.StatusServiceUnavailable
}

// take carries one request out.
func (s *Server) take(ctx context.Context, r *http.Request, done bool) error {
	uid, ok := r.Context().Value(peerKey{}).(uint32)
	if !ok {
		return refuse(http.StatusForbidden, "the kernel does not name the caller")
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return refuse(http.StatusBadRequest, "the request was cut off: %v", err)
	case len(data) > maxBody:
		return refuse(http.StatusRequestEntityTooLarge, "the request has more than %d bytes", maxBody)
	}
	q, err := parseRequest(data, done)
	if err != nil {
		return err
	}
	tenant, held, err := s.Owner.Tenant(ctx, q.Transaction, q.Member)
	switch {
	case err != nil:
		return err
	case !held && isTrusted(uid):
		return refuse(http.StatusNotFound, "transaction %.80q has no grant with member %d on this host", q.Transaction, q.Member)
	case !held || !s.mayAttach(uid, tenant): // the same answer: others do not learn which grants there are
		return refuse(http.StatusForbidden, "user %d may not attach to member %d of transaction %.80q: root may, and the user of the tenant whose grant is on this host", uid, q.Member, q.Transaction)
	}
	a := run.Attachment{Code: q.Code}
	switch {
	case q.PID != 0:
		a.Process, err = s.process(q.PID, uid)
	case q.Cgroup != "":
		a.Cgroup, err = s.cgroup(q.Cgroup, uid)
	}
	if err != nil {
		return err
	}
	if err := s.Owner.Attach(ctx, q.Transaction, q.Member, a); err != nil {
		return err
	}
	attrs := []any{"tx", string(q.Transaction), "member", q.Member, "uid", uid}
	if done {
		s.Log.Info("work_done", append(attrs, "code", *q.Code)...)
	} else {
		s.Log.Info("work_attached", append(attrs, "pid", q.PID, "cgroup", q.Cgroup)...)
	}
	return nil
}
