package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/internal/clicontext"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
)

const token = "s3cret"

// newServer serves two GPU nodes and a small one; everything in it was made a
// hundred days ago.
func newServer(t *testing.T) *httptest.Server {
	t.Helper()
	then := func() time.Time { return time.Now().Add(-100*24*time.Hour - time.Minute) }
	cluster := resttest.New(then,
		resttest.Node{Name: "gpu-1", CPUs: 16, Memory: 64 << 30, GPUs: 4, Labels: map[string]string{"zone": "a"}},
		resttest.Node{Name: "gpu-2", CPUs: 16, Memory: 64 << 30, GPUs: 4, Labels: map[string]string{"zone": "b"}},
		resttest.Node{Name: "small", CPUs: 2, Memory: 4 << 30},
	)
	server := httptest.NewServer(rest.NewHandler(rest.Config{
		Service: cluster, Authenticator: service.StaticToken(token), Credentials: resttest.Credentials(t), Version: "v0.0.0-server", Notices: cluster.Notices, Audits: &auditBook{},
	}))
	t.Cleanup(server.Close)
	return server
}

// shell runs the program as a person would, in a folder of its own.
type shell struct {
	folder string
	env    map[string]string
}

func newShell(t *testing.T, server *httptest.Server) shell {
	t.Helper()
	s := shell{folder: t.TempDir(), env: map[string]string{}}
	s.env["MUSTER_CONTEXT"] = filepath.Join(s.folder, "context.json")
	if server != nil {
		s.save(t, clicontext.Context{Addr: server.URL, Token: token})
	}
	return s
}

// save makes a context the current one, by the name test.
func (s shell) save(t *testing.T, c clicontext.Context) {
	t.Helper()
	if err := clicontext.Update(s.env["MUSTER_CONTEXT"], func(f *clicontext.File) error {
		f.Current, f.Contexts["test"] = "test", c
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func (s shell) run(ctx context.Context, stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errors bytes.Buffer
	code = Program{
		Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errors, Env: func(k string) string { return s.env[k] }, Args: args, Version: "v0.0.0-client",
	}.Run(ctx)
	return code, out.String(), errors.String()
}

var (
	timestamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	tries      = regexp.MustCompile(`placement tried \d+×`) // the backstop tries by time
	attempts   = regexp.MustCompile(`"attempts": \d+`)
	addresses  = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	secrets    = regexp.MustCompile(`(muster\.at-)[0-9a-f]{10}\.[0-9a-f]{40}`)
	tokenIDs   = regexp.MustCompile(`at-[0-9a-f]{10}`)
	bindingIDs = regexp.MustCompile(`rolebinding-[0-9a-f]{10}`)
	goVersions = regexp.MustCompile(`go1\.[0-9.]+[^,)" ]*`)
)

// TestTranscripts replays command lines against one server per file. "file
// NAME" makes a file; "muster" runs the command in its first line with the
// rest as standard input. Rewrite with -rewrite.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, filepath.Join("testdata", "transcripts"), func(t *testing.T, path string) {
		s := newShell(t, newServer(t))
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "file":
				path := filepath.Join(s.folder, d.CmdArgs[0].Key)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(d.Input+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				return "ok\n"
			case "muster":
				line, stdin, _ := strings.Cut(d.Input, "\n")
				args := strings.Fields(line)
				for i, arg := range args {
					args[i] = strings.ReplaceAll(arg, "DIR/", s.folder+"/")
				}
				return transcript(s, s.folder, stdin, args)
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

// transcript shows a run with everything that differs between runs made equal.
func transcript(s shell, folder, stdin string, args []string) string {
	code, stdout, stderr := s.run(context.Background(), stdin, args...)
	var b strings.Builder
	b.WriteString(stdout)
	for line := range strings.Lines(stderr) {
		b.WriteString("stderr: " + line)
	}
	if code != ExitDone {
		fmt.Fprintf(&b, "exit %d\n", code)
	}
	text := strings.ReplaceAll(b.String(), folder+"/", "DIR/")
	text = timestamps.ReplaceAllString(text, "<time-of-long-ago->")
	text = tries.ReplaceAllString(text, "placement tried N×")
	text = attempts.ReplaceAllString(text, `"attempts": N`)
	text = addresses.ReplaceAllString(text, "127.0.0.1:PORT")
	text = secrets.ReplaceAllString(text, "${1}THE-NEW-ID.SECRET")
	text = bindingIDs.ReplaceAllString(text, "rolebinding-UID")
	text = tokenIDs.ReplaceAllString(text, "at-THE-NEW-ID")
	text = goVersions.ReplaceAllString(text, "goVERSION")
	if strings.Contains(text, "\n\n") {
		text = strings.ReplaceAll(text, "\n\n", "\n~\n") // a blank line would end the golden text
	}
	return text
}

// awaitListed waits until an object is listed, which another submits.
func (s shell) awaitListed(t *testing.T, kind, name string) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for {
		_, stdout, stderr := s.run(t.Context(), "", "get", kind, "-o", "name")
		if strings.Contains(stdout, name) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s is not among the %s: %s%s", name, kind, stdout, stderr)
		}
	}
}

func TestWaitEndsWhenRoomIsMade(t *testing.T) {
	s := newShell(t, newServer(t))
	gang := `{"metadata":{"name":"%s"},"spec":{"parallelism":2,"template":{"spec":{"resources":{"requests":{"nvidia.com/gpu":4}},"gangScheduling":{}}}}}`
	if code, _, stderr := s.run(t.Context(), fmt.Sprintf(gang, "first"), "submit", "-f", "-", "--wait"); code != ExitDone {
		t.Fatal(stderr)
	}
	done := make(chan string, 1) // one result
	go func() {
		code, stdout, stderr := s.run(t.Context(), fmt.Sprintf(gang, "second"), "submit", "-f", "-", "--wait", "-o", "json")
		done <- fmt.Sprint(code, stdout, stderr)
	}()
	s.awaitListed(t, "jobs", "second")
	if code, _, stderr := s.run(t.Context(), "", "delete", "job", "first", "--wait"); code != ExitDone {
		t.Fatal(stderr)
	}
	if got := <-done; !strings.HasPrefix(got, "0") || !strings.Contains(got, `"phase": "Running"`) {
		t.Errorf("the waiting submit ended with %s", got)
	}
}

func TestListOfAllNamespacesShowsEveryMembersDevices(t *testing.T) {
	s := newShell(t, newServer(t))
	doc := `{"metadata":{"name":"gang"},"spec":{"parallelism":2,"template":{"spec":{"resources":{"requests":{"nvidia.com/gpu":4}},"gangScheduling":{}}}}}`
	if code, _, stderr := s.run(t.Context(), doc, "submit", "-f", "-", "-n", "team", "--wait"); code != ExitDone {
		t.Fatal(stderr)
	}
	code, stdout, stderr := s.run(t.Context(), "", "get", "allocations", "-A", "-o", "json")
	if code != ExitDone {
		t.Fatal(stderr)
	}
	var list api.AllocationList
	if err := json.Unmarshal([]byte(stdout), &list); err != nil {
		t.Fatal(err)
	}
	uuid := regexp.MustCompile(`^GPU-[0-9a-f-]{36}$`)
	seen := map[string]bool{}
	for _, item := range list.Items {
		if item.Status.Phase != api.Running || item.Status.NodeName == "" {
			t.Errorf("%s: phase %q on node %q", item.Metadata.Name, item.Status.Phase, item.Status.NodeName)
		}
		for _, g := range item.Status.Assignment.GPUs {
			if !uuid.MatchString(g.UUID) {
				t.Errorf("%q is not GPU- and 36 characters", g.UUID)
			}
			seen[g.UUID] = true
		}
	}
	if list.Kind != "AllocationList" || len(list.Items) != 2 || len(seen) != 8 {
		t.Errorf("got a %s of %d with %d distinct devices, want 2 with 8", list.Kind, len(list.Items), len(seen))
	}
}

func TestWhereTheServerIsFound(t *testing.T) {
	server := newServer(t)
	get := []string{"get", "nodes", "-o", "name"}
	cases := map[string]struct {
		file       *clicontext.Context
		env        map[string]string
		args       []string
		wantCode   int
		wantStderr string
	}{
		"context file":                              {file: &clicontext.Context{Addr: server.URL, Token: token}},
		"environment over file":                     {file: &clicontext.Context{Addr: "http://127.0.0.1:1", Token: "x"}, env: map[string]string{"MUSTER_ADDR": server.URL, "MUSTER_TOKEN": token}},
		"flags over environment":                    {env: map[string]string{"MUSTER_ADDR": "http://127.0.0.1:1", "MUSTER_TOKEN": "x"}, args: []string{"--addr", server.URL, "--token", token}},
		"the scheme may be left out":                {args: []string{"--addr", server.Listener.Addr().String(), "--token", token}},
		"the file's token is for the file's server": {file: &clicontext.Context{Addr: "http://127.0.0.1:1", Token: token}, args: []string{"--addr", server.URL}, wantCode: 1, wantStderr: "does not let you in: no token"},
		"a wrong token":                             {args: []string{"--addr", server.URL, "--token", "wrong"}, wantCode: 1, wantStderr: "does not let you in: the token is not valid here"},
		"nothing is known":                          {wantCode: 1, wantStderr: "muster: no server is known: start one with muster dev, or name it with --addr or MUSTER_ADDR"},
		"nobody listens":                            {args: []string{"--addr", "127.0.0.1:1", "--token", "x"}, wantCode: 1, wantStderr: "cannot connect to http://127.0.0.1:1: connection refused; is it running? start one with: muster dev"},
		"a token in plain text over the network":    {args: []string{"--addr", "192.0.2.1:8470", "--token", "x"}, wantCode: 2, wantStderr: "--addr: endpoint \"http://192.0.2.1:8470\": a token is sent to this machine or over https only: use https://192.0.2.1:8470"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, nil)
			if c.file != nil {
				s.save(t, *c.file)
			}
			for k, v := range c.env {
				s.env[k] = v
			}
			code, _, stderr := s.run(t.Context(), "", append(get, c.args...)...)
			if code != c.wantCode || !strings.Contains(stderr, c.wantStderr) {
				t.Errorf("exit %d, %q; want %d, %q", code, stderr, c.wantCode, c.wantStderr)
			}
		})
	}
}

func TestContextFileReadableByOthersIsRefused(t *testing.T) {
	s := newShell(t, newServer(t))
	if err := os.Chmod(s.env["MUSTER_CONTEXT"], 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := s.run(t.Context(), "", "get", "nodes")
	if code != ExitFailed || !strings.Contains(stderr, "others may use it (mode 0644): chmod 600") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

func TestInterruptEndsAWait(t *testing.T) {
	s := newShell(t, newServer(t))
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	done := make(chan string, 1) // one result
	go func() {
		doc := `{"metadata":{"name":"big"},"spec":{"resources":{"requests":{"nvidia.com/gpu":8}}}}`
		code, _, stderr := s.run(ctx, doc, "submit", "-f", "-", "--wait")
		done <- fmt.Sprint(code, stderr)
	}()
	s.awaitListed(t, "allocations", "big")
	interrupt()
	if got := <-done; !strings.HasPrefix(got, fmt.Sprint(ExitFailed)) || !strings.Contains(got, "interrupted") {
		t.Errorf("the waiting submit ended with %s", got)
	}
}

func TestExtraVerbsStandBesideTheOthers(t *testing.T) {
	var out, errors bytes.Buffer
	extra := func() *cobra.Command {
		return &cobra.Command{Use: "extra", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return Usage(fmt.Errorf("odd")) }}
	}
	p := Program{Stdout: &out, Stderr: &errors, Env: func(string) string { return "" }}
	for args, want := range map[string]string{
		"extra":      "muster: odd; see muster extra --help\n",
		"extra more": "muster: want no arguments, got [\"more\"]; see muster extra --help\n",
		"extra --x":  "muster: unknown flag: --x; see muster extra --help\n",
	} {
		errors.Reset()
		p.Args = strings.Fields(args)
		if code := p.Run(t.Context(), extra()); code != ExitMisused || errors.String() != want {
			t.Errorf("%s: exit %d, %q; want %q", args, code, &errors, want)
		}
	}
	if cmd, _, err := New(p, extra()).Find([]string{"extra"}); err != nil || cmd.Name() != "extra" {
		t.Errorf("New: found %v, %v", cmd, err)
	}
}

func TestAges(t *testing.T) {
	now := time.Date(2024, 1, 15, 12, 0, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 119 * time.Second: "119s", 2 * time.Minute: "2m", 119 * time.Minute: "119m", 2 * time.Hour: "2h", 48 * time.Hour: "2d",
	} {
		if got := age(now.Add(-ago).Format(time.RFC3339), now); got != want {
			t.Errorf("%s ago: got %q, want %q", ago, got, want)
		}
	}
	if got := age("", now); got != "" {
		t.Errorf("no timestamp: got %q", got)
	}
}
