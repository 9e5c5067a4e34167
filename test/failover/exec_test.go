package failover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/musterd/muster/api"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/programs"
	"github.com/musterd/muster/wire"
)

// further is a session whose command waits for ever.
type further struct {
	variable string // in the environment of the command's processes
	ended    chan error
}

// marks numbers the sessions.
type marks struct{ last int }

// next is the script of a session: its processes have a variable of their own.
func (m *marks) next() (variable, script string) {
	m.last++
	variable = "FURTHER=" + strconv.Itoa(os.Getpid()) + "." + strconv.Itoa(m.last)
	return variable, "export " + variable + "; trap '' HUP; sleep 3601 & sh -c 'echo ready; sleep 3601'"
}

// sdkSession opens a session by WebSocket, and returns once its command runs.
func (m *marks) sdkSession(ctx context.Context, t *testing.T, k *sdk.Client, job string) *further {
	t.Helper()
	variable, script := m.next()
	s, err := k.Jobs("default").Exec(ctx, job, sdk.ExecOptions{Command: []string{"sh", "-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	f := &further{variable: variable, ended: make(chan error, 1)}
	ready := make(chan struct{})
	go func() {
		exit, err := s.Run(once{text: "ready", found: ready}.writer(), &bytes.Buffer{})
		if err == nil {
			err = fmt.Errorf("the command has ended: %+v", exit)
		}
		f.ended <- err
	}()
	f.await(ctx, t, ready)
	return f
}

// grpcSession is the same over gRPC.
func (m *marks) grpcSession(ctx context.Context, t *testing.T, b *bearer, at *cluster.Process, job string) *further {
	t.Helper()
	variable, script := m.next()
	trust, err := credentials.NewClientTLSFromFile(b.c.CAFile(), "")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///"+at.Address(cluster.RESTPort), grpc.WithTransportCredentials(trust))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	stream, err := apiv1.NewJobsClient(conn).Exec(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+b.token))
	if err != nil {
		t.Fatal(err)
	}
	open := &apiv1.ExecOpen{Namespace: "default", Name: job, Command: []string{"sh", "-c", script}}
	if err := stream.Send(&apiv1.ExecRequest{Message: &apiv1.ExecRequest_Open{Open: open}}); err != nil {
		t.Fatal(err)
	}
	f := &further{variable: variable, ended: make(chan error, 1)}
	ready := make(chan struct{})
	go func() {
		out := once{text: "ready", found: ready}.writer()
		for {
			answer, err := stream.Recv()
			if wire.IsRefusal(err) {
				err = wire.FromRefusal(err)
			}
			if err != nil {
				f.ended <- err
				return
			}
			_, _ = out.Write(answer.GetOutput())
		}
	}()
	f.await(ctx, t, ready)
	return f
}

// lookOn opens a session with the member's own command, whose end it sends.
func lookOn(ctx context.Context, t *testing.T, k *sdk.Client, job string) <-chan error {
	t.Helper()
	s, err := k.Jobs("default").Exec(ctx, job, sdk.ExecOptions{Attach: true, From: new(int64)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.Run(&bytes.Buffer{}, &bytes.Buffer{})
		ended <- err
	}()
	return ended
}

func (f *further) await(ctx context.Context, t *testing.T, ready <-chan struct{}) {
	t.Helper()
	select {
	case <-ready:
	case err := <-f.ended:
		t.Fatalf("before its command ran the session has ended: %v", err)
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	if len(withVariable(f.variable)) == 0 {
		t.Fatalf("no process has %s", f.variable)
	}
}

// gone waits until the session has ended, and nothing of its command runs.
func (f *further) gone(ctx context.Context, t *testing.T, after string) error {
	t.Helper()
	var ended error
	select {
	case ended = <-f.ended:
	case <-ctx.Done():
		t.Fatalf("after %s the session goes on", after)
	}
	programs.Eventually(t, cluster.Patience, "the end of the processes after "+after, func() error {
		if left := withVariable(f.variable); len(left) > 0 {
			return fmt.Errorf("processes %v are left", left)
		}
		return nil
	})
	return ended
}

// once looks for a text in what is written.
type once struct {
	text  string
	found chan struct{}
}

func (o once) writer() *onceWriter { return &onceWriter{once: o} }

type onceWriter struct {
	once
	all  bytes.Buffer
	done sync.Once
}

func (w *onceWriter) Write(p []byte) (int, error) {
	w.all.Write(p)
	if strings.Contains(w.all.String(), w.text) {
		w.done.Do(func() { close(w.found) })
	}
	return len(p), nil
}

// withVariable lists the processes with a variable in their environment.
func withVariable(text string) (list []int) {
	entries, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	for _, path := range entries {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), []byte("\x00"+text+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(path, "/")[2]); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// TestFurtherCommandsEndWithTheirSessions: a session goes on over the end of the leader, and
// ends with its coordinator, with its agent, and with the token of its person; in each case
// nothing of its command is left, and the member runs on.
func TestFurtherCommandsEndWithTheirSessions(t *testing.T) {
	ml, _ := hostUsers(t)
	c := cluster.Start(t, cluster.Options{
		Agents: 1, Quiet: true, CoordinatorSettings: cluster.Settings{"startsWork": true},
		AgentSettings: func(resource.NodeID) cluster.Settings {
			return cluster.Settings{"work": cluster.Settings{"users": map[string]string{"*": ml}, "allowRoot": ml == "root"}}
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*cluster.Patience)
	defer cancel()
	leader, epoch := c.AwaitLeader(0)
	followers := c.Followers(leader)
	admin := client(t, c, followers...)
	runs(ctx, t, admin, "default", "hold", "exec sleep 3600")
	programs.Eventually(t, cluster.Patience, "the start of the job", func() error {
		s, err := admin.Jobs("default").Exec(ctx, "hold", sdk.ExecOptions{Command: []string{"true"}})
		if err != nil {
			return err
		}
		exit, err := s.Run(&bytes.Buffer{}, &bytes.Buffer{})
		if err != nil || exit.Code != 0 {
			return fmt.Errorf("%+v: %w", exit, err)
		}
		return nil
	})
	var m marks

	b, id := newBearerAs(t, c, api.RoleEditor, followers...)
	k, err := sdk.NewClient(sdk.Config{Endpoint: endpoints(followers[1]), Token: b.token, CAFile: c.CAFile()})
	if err != nil {
		t.Fatal(err)
	}
	first, second := m.sdkSession(ctx, t, client(t, c, followers[0]), "hold"), m.sdkSession(ctx, t, k, "hold")
	third := m.grpcSession(ctx, t, b, followers[1], "hold")

	attached := lookOn(ctx, t, k, "hold")

	leader.Kill()
	began := time.Now()
	if _, err := admin.Tokens().Revoke(ctx, id); err != nil {
		t.Fatal(err)
	}
	var status *api.Status
	if err := second.gone(ctx, t, "the revocation"); !errors.As(err, &status) || status.Code != http.StatusUnauthorized {
		t.Errorf("the session over WebSocket has ended with %v, want a 401", err)
	}
	if err := third.gone(ctx, t, "the revocation"); !errors.As(err, &status) || status.Code != http.StatusUnauthorized {
		t.Errorf("the session over gRPC has ended with %v, want a 401", err)
	}
	if err := <-attached; !errors.As(err, &status) || status.Code != http.StatusUnauthorized {
		t.Errorf("the attached session has ended with %v, want a 401", err)
	}
	t.Logf("the sessions ended within %v of the revocation, while nobody led", time.Since(began).Round(time.Millisecond))
	c.AwaitLeader(epoch)
	leader.Start()
	select {
	case err := <-first.ended:
		t.Errorf("the session of another person has ended: %v", err)
	default:
	}

	followers[0].Kill()
	if err := first.gone(ctx, t, "the kill of its coordinator"); errors.As(err, &status) {
		t.Errorf("a killed coordinator has sent %v", status)
	}
	followers[0].Start()
	c.AwaitReady()

	last := m.sdkSession(ctx, t, client(t, c, followers[1]), "hold")
	attached = lookOn(ctx, t, client(t, c, followers[1]), "hold")
	c.Agents[0].Kill()
	if err := last.gone(ctx, t, "the kill of its agent"); !errors.As(err, &status) || status.Code != http.StatusServiceUnavailable {
		t.Errorf("the session of a killed agent has ended with %v, want a 503", err)
	}
	if err := <-attached; !errors.As(err, &status) || status.Code != http.StatusServiceUnavailable || !strings.Contains(status.Message, "its command goes on") {
		t.Errorf("the attached session of a killed agent has ended with %v, want a 503", err)
	}
	c.Agents[0].Start()
	j, err := admin.Jobs("default").Get(ctx, "hold", sdk.GetOptions{})
	if err != nil || j.Status.Phase != api.Running {
		t.Errorf("the job is %v: %v", j, err)
	}
	// The supervisor has outlived its agent, and the next one finds it.
	programs.Eventually(t, cluster.Patience, "a session after the restart of the agent", func() error {
		s, err := admin.Jobs("default").Exec(ctx, "hold", sdk.ExecOptions{Attach: true})
		if err != nil {
			return err
		}
		return s.Close()
	})
}
