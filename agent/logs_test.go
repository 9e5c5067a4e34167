package agent_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// reader opens the output of a start.
func (r *rig) reader(q *musterv1.ReadLogRequest) musterv1.Agent_ReadLogClient {
	r.t.Helper()
	stream, err := musterv1.NewAgentClient(r.dial(token(r.t))).ReadLog(r.t.Context(), q)
	if err != nil {
		r.t.Fatal(err)
	}
	return stream
}

// readUntil reads output until it has a text, "" being its end.
func readUntil(t *testing.T, stream musterv1.Agent_ReadLogClient, text string) (all string) {
	t.Helper()
	for text == "" || !strings.Contains(all, text) {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) && text == "" {
			return all
		} else if err != nil {
			t.Fatalf("after %q: %v", all, err)
		}
		all += string(piece.GetData())
	}
	return all
}

func TestOutputIsFollowedFromBeforeTheStartToTheEnd(t *testing.T) {
	r := newWorkRig(t)
	r.start()
	l := r.lead(1)
	r.grant(l, "a", 1)
	gate := r.dir + "/gate"
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	early := r.reader(&musterv1.ReadLogRequest{Cluster: cluster, Tx: "a", Follow: true})
	l.send(startOf("a", `echo one; read line < `+gate+`; echo two; exit 3`))
	l.work("a", musterv1.WorkState_RUNNING)
	readUntil(t, early, "one\n")
	late := r.reader(&musterv1.ReadLogRequest{Cluster: cluster, Tx: "a", Offset: 2, Follow: true})
	if got := readUntil(t, late, "\n"); got != "e\n" {
		t.Errorf("from offset 2: %q, want the rest of the first line", got)
	}
	if got := readUntil(t, r.reader(&musterv1.ReadLogRequest{Cluster: cluster, Tx: "a"}), ""); got != "one\n" {
		t.Errorf("without follow: %q, want the output that there is", got)
	}
	if gate, err := os.OpenFile(gate, os.O_WRONLY, 0); err != nil { // waits for the command
		t.Fatal(err)
	} else if _, err := gate.WriteString("go\n"); err != nil || gate.Close() != nil {
		t.Fatal(err)
	}
	for name, stream := range map[string]musterv1.Agent_ReadLogClient{"early": early, "late": late} {
		if got := readUntil(t, stream, ""); got != "two\n" {
			t.Errorf("%s reader: %q follows, want the rest up to the end", name, got)
		}
	}
	l.work("a", musterv1.WorkState_ENDED)
	// The folder is the truth: an agent that was started anew has the output too.
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r.start()
	if got := readUntil(t, r.reader(&musterv1.ReadLogRequest{Cluster: cluster, Tx: "a", Follow: true}), ""); got != "one\ntwo\n" {
		t.Errorf("after a restart of the agent: %q", got)
	}
}

func TestOutputThatThereIsNotIsRefused(t *testing.T) {
	r := newWorkRig(t)
	r.start()
	for name, c := range map[string]struct {
		q    *musterv1.ReadLogRequest
		code codes.Code
		text string
	}{
		"a transaction that the host does not know":   {&musterv1.ReadLogRequest{Cluster: cluster, Tx: "b"}, codes.NotFound, "no output of this start"},
		"the same, followed":                          {&musterv1.ReadLogRequest{Cluster: cluster, Tx: "b", Follow: true}, codes.NotFound, "no output of this start"},
		"another cluster":                             {&musterv1.ReadLogRequest{Cluster: "other", Tx: "b"}, codes.FailedPrecondition, "other"},
		"no transaction":                              {&musterv1.ReadLogRequest{Cluster: cluster}, codes.InvalidArgument, "tx"},
		"a negative offset":                           {&musterv1.ReadLogRequest{Cluster: cluster, Tx: "b", Offset: -1}, codes.InvalidArgument, "offset"},
		"a transaction that is the path of something": {&musterv1.ReadLogRequest{Cluster: cluster, Tx: "../../etc/passwd"}, codes.NotFound, "no output of this start"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.reader(c.q).Recv()
			if status.Code(err) != c.code || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %s with %q", err, c.code, c.text)
			}
		})
	}
}
