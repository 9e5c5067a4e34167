package cli

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
)

func TestOutputShowsItsMembersAndItsGaps(t *testing.T) {
	piece := func(member int32, offset int64, text string) api.LogChunk {
		c := api.LogChunk{Member: member, Node: "gpu-1", Transaction: "tx", Offset: offset}
		c.SetBytes([]byte(text))
		return c
	}
	again := piece(1, 0, "anew\n")
	again.Transaction = "ty"
	for name, c := range map[string]struct {
		members        int
		pieces         []api.LogChunk
		args           []string
		stdout, stderr string
	}{
		"lines of members are not mixed": {
			11, []api.LogChunk{piece(3, 0, "a"), piece(10, 0, "b\nc"), piece(3, 1, "a\n"), piece(10, 3, "\n")}, nil,
			"10: b\n 3: aa\n10: c\n", "",
		},
		"a line without an end is shown at the end":     {2, []api.LogChunk{piece(1, 0, "a\nlast")}, nil, "1: a\n1: last\n", ""},
		"one member has its bytes alone":                {2, []api.LogChunk{piece(0, 0, "x"), piece(1, 0, "\xff\x1b[1m\r")}, []string{"--member", "1"}, "\xff\x1b[1m\r", ""},
		"a job of one member too":                       {1, []api.LogChunk{piece(0, 0, "a")}, nil, "a", ""},
		"output that is kept no more":                   {1, []api.LogChunk{piece(0, 100, "a\n"), piece(0, 104, "b\n")}, nil, "a\nb\n", "muster: 100 bytes of output of member 0 are kept no more\nmuster: 2 bytes of output of member 0 are kept no more\n"},
		"a start anew ends the line that was begun":     {2, []api.LogChunk{piece(1, 0, "cut"), again}, []string{"-f"}, "1: cut\n1: anew\n", "muster: member 1 was started anew on node gpu-1\n"},
		"why there is no output is no part of the text": {2, []api.LogChunk{{Member: 1, Message: "node gpu-1 is away"}}, nil, "", "muster: node gpu-1 is away\n"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := resttest.New(time.Now, resttest.Node{Name: "gpu-1", CPUs: 16})
			server := httptest.NewServer(rest.NewHandler(rest.Config{Service: cluster, Authenticator: service.StaticToken(token)}))
			t.Cleanup(server.Close)
			s := newShell(t, server)
			document := fmt.Sprintf(`{"kind":"Job","metadata":{"name":"train"},"spec":{"parallelism":%d,"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}}}`, c.members)
			if code, _, stderr := s.run(t.Context(), document, "submit", "-f", "-"); code != ExitDone {
				t.Fatal(stderr)
			}
			cluster.SetOutput("default", "train", c.pieces...)
			code, stdout, stderr := s.run(t.Context(), "", append([]string{"logs", "train"}, c.args...)...)
			if diff := cmp.Diff([]string{c.stdout, c.stderr}, []string{stdout, stderr}); diff != "" || code != ExitDone {
				t.Errorf("exit code %d (-want +got):\n%s", code, diff)
			}
		})
	}
}

func TestTheExitCodeOfAJobIsThatOfItsFirstFailure(t *testing.T) {
	code := func(n int32) *int32 { return &n }
	for name, c := range map[string]struct {
		members []api.JobMember
		want    int
	}{
		"the member that failed by itself, not those that were stopped": {[]api.JobMember{{ExitCode: code(143), ExitReason: "Stopped"}, {ExitCode: code(3), ExitReason: "Completed"}}, 3},
		"the first of several":             {[]api.JobMember{{ExitCode: code(0), ExitReason: "Completed"}, {ExitCode: code(4), ExitReason: "Completed"}, {ExitCode: code(5), ExitReason: "Completed"}}, 4},
		"a supervisor that was lost":       {[]api.JobMember{{ExitCode: code(255), ExitReason: "SupervisorLost"}}, 255},
		"all were stopped":                 {[]api.JobMember{{ExitCode: code(143), ExitReason: "Stopped"}, {ExitCode: code(137), ExitReason: "Killed"}}, 143},
		"nothing was started":              {[]api.JobMember{{}}, ExitFailed},
		"it was ended and took it lightly": {[]api.JobMember{{ExitCode: code(0), ExitReason: "Stopped"}}, ExitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			j := &api.Job{}
			j.Status.Allocations = c.members
			if got := exitCodeOf(j); got != c.want {
				t.Errorf("exit code %d, want %d", got, c.want)
			}
		})
	}
}
