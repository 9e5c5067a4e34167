package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	sessions "github.com/musterd/muster/grant"
	"github.com/musterd/muster/test/resttest"
)

// ending is a cluster with the ends of jobs and sessions of a test.
type ending struct {
	*resttest.Cluster
	exit *sessions.ExecExit // of each session; nil: err is the end
	err  error              // of each session without an exit, and of the output of each job
	job  api.JobStatus      // of each job
}

func (e *ending) JobExec(context.Context, string, string, service.ExecQuery) (sessions.ExecSession, error) {
	return endingSession{e}, nil
}

// CreateJob leaves the command out: the cluster of the test starts no processes.
func (e *ending) CreateJob(ctx context.Context, create service.Create, j *api.Job) (*api.Job, error) {
	j.Spec.Template.Spec.Command = nil
	return e.Cluster.CreateJob(ctx, create, j)
}

func (e *ending) GetJob(ctx context.Context, namespace, name string, wait time.Duration) (*api.Job, error) {
	j, err := e.Cluster.GetJob(ctx, namespace, name, wait)
	if err == nil && e.job.Phase != "" {
		j.Status = e.job
	}
	return j, err
}

func (e *ending) JobLogs(context.Context, string, string, service.LogQuery) (service.LogStream, error) {
	return endingOutput{e.err}, nil
}

// endingSession has ended before the first message.
type endingSession struct{ of *ending }

func (endingSession) Send(sessions.ExecInput) error { return io.ErrClosedPipe }
func (s endingSession) Close()                      {}
func (s endingSession) Receive() (sessions.ExecOutput, error) {
	if s.of.exit == nil {
		return sessions.ExecOutput{}, s.of.err
	}
	return sessions.ExecOutput{Exit: s.of.exit}, nil
}

// endingOutput has no pieces, and ends with an error or without.
type endingOutput struct{ err error }

func (o endingOutput) Next(context.Context) (*api.LogChunk, error) {
	if o.err == nil {
		return nil, io.EOF
	}
	return nil, o.err
}
func (endingOutput) Close() {}

// shellOf is a shell beside a cluster with the job train.
func shellOf(t *testing.T, e *ending) shell {
	t.Helper()
	e.Cluster = resttest.New(time.Now, resttest.Node{Name: "gpu-1", CPUs: 16})
	server := httptest.NewServer(rest.NewHandler(rest.Config{Service: e, Authenticator: service.StaticToken(token)}))
	t.Cleanup(server.Close)
	s := newShell(t, server)
	if code, _, stderr := s.run(t.Context(), `{"kind":"Job","metadata":{"name":"train"},"spec":{"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}}}`, "submit", "-f", "-"); code != ExitDone {
		t.Fatal(stderr)
	}
	return s
}

// Each exit code of a command is the program's own, 1 and 2 too, the codes of muster's own failures; without an exit the code is never 0.
func TestASessionEndsWithTheExitCodeOfItsCommand(t *testing.T) {
	for name, c := range map[string]struct {
		exit   *sessions.ExecExit
		err    error
		want   int
		stderr string
	}{
		"success":                   {exit: &sessions.ExecExit{Reason: "Completed"}, want: 0},
		"1":                         {exit: &sessions.ExecExit{Code: 1, Reason: "Completed"}, want: 1},
		"2":                         {exit: &sessions.ExecExit{Code: 2, Reason: "Completed"}, want: 2},
		"a command that cannot run": {exit: &sessions.ExecExit{Code: 126, Reason: "NotStarted", Message: "permission denied"}, want: 126, stderr: "permission denied"},
		"a command that is absent":  {exit: &sessions.ExecExit{Code: 127, Reason: "NotStarted", Message: "not found"}, want: 127, stderr: "not found"},
		"SIGKILL":                   {exit: &sessions.ExecExit{Code: 137, Signal: 9, Reason: "Stopped"}, want: 137},
		"SIGTERM":                   {exit: &sessions.ExecExit{Code: 143, Signal: 15, Reason: "Completed"}, want: 143},
		"the highest code":          {exit: &sessions.ExecExit{Code: 255, Reason: "Completed"}, want: 255},
		"a connection that is lost": {err: errors.New("the node went away"), want: ExitFailed, stderr: "the node went away"},
		"a token that is revoked":   {err: api.Errorf(http.StatusUnauthorized, "the token is not valid here"), want: ExitFailed, stderr: "the token is not valid here"},
	} {
		for _, args := range [][]string{{"exec", "train", "--", "true"}, {"attach", "train"}} {
			t.Run(args[0]+"/"+name, func(t *testing.T) {
				s := shellOf(t, &ending{exit: c.exit, err: c.err})
				code, _, stderr := s.run(t.Context(), "", args...)
				if code != c.want || !strings.Contains(stderr, c.stderr) {
					t.Errorf("exit code %d with %q, want %d with %q", code, stderr, c.want, c.stderr)
				}
			})
		}
	}
}

// A run ends with the exit code of the job, and not with 0 where the job or the output failed.
func TestARunEndsWithTheExitCodeOfItsJob(t *testing.T) {
	ended := func(phase api.Phase, code int32, reason string) api.JobStatus {
		return api.JobStatus{Phase: phase, Allocations: []api.JobMember{{Name: "train", Phase: phase, ExitCode: &code, ExitReason: reason}}}
	}
	for name, c := range map[string]struct {
		job  api.JobStatus
		err  error
		args []string
		want int
	}{
		"success":                       {ended(api.Succeeded, 0, "Completed"), nil, nil, 0},
		"1":                             {ended(api.Failed, 1, "Completed"), nil, nil, 1},
		"2":                             {ended(api.Failed, 2, "Completed"), nil, nil, 2},
		"SIGKILL":                       {ended(api.Failed, 137, "Killed"), nil, nil, 137},
		"failed with 0":                 {ended(api.Failed, 0, "Completed"), nil, nil, ExitFailed},
		"cancelled":                     {ended(api.Cancelled, 0, "Stopped"), nil, nil, ExitFailed},
		"preempted":                     {ended(api.Preempted, 143, "Stopped"), nil, nil, 143},
		"an output that is cut off":     {ended(api.Succeeded, 0, "Completed"), api.Errorf(http.StatusUnauthorized, "the token is not valid here"), nil, ExitFailed},
		"logs of a job that has failed": {ended(api.Failed, 1, "Completed"), nil, []string{"logs", "train"}, 0}, // the output is shown
		"logs that are cut off":         {ended(api.Running, 0, ""), api.Errorf(http.StatusUnauthorized, "the token is not valid here"), []string{"logs", "-f", "train"}, ExitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			s := shellOf(t, &ending{job: c.job, err: c.err})
			args := c.args
			if args == nil {
				args = []string{"run", "--name", "again", "--cpu", "1", "--", "true"}
			}
			if code, stdout, stderr := s.run(t.Context(), "", args...); code != c.want || strings.Contains(stderr, "--help") {
				t.Errorf("exit code %d with %q and %q, want %d", code, stdout, stderr, c.want)
			}
		})
	}
}

// TestAGroupOfCommandsRefusesUnknownCommands: cobra by itself shows the help and ends with 0.
func TestAGroupOfCommandsRefusesUnknownCommands(t *testing.T) {
	s := newShell(t, newServer(t))
	groups := 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.HasSubCommands() {
			groups++
			path := strings.Fields(c.CommandPath())[1:]
			code, _, stderr := s.run(t.Context(), "", append(slices.Clone(path), "nosuch")...)
			if code != ExitMisused || !strings.Contains(stderr, `unknown command "nosuch"`) {
				t.Errorf("%s nosuch: exit %d, %q; want %d and the unknown command: make the command by parent", c.CommandPath(), code, stderr, ExitMisused)
			}
			if code, stdout, _ := s.run(t.Context(), "", path...); code != ExitDone || !strings.Contains(stdout, "Available Commands") {
				t.Errorf("%s: exit %d, %q; want the help", c.CommandPath(), code, stdout)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	if walk(New(Program{})); groups < 10 {
		t.Errorf("%d groups of commands", groups)
	}
}
