package agents_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// ReadLog gives the query as output, and waits for the end of the reader where it follows.
func (s *server) ReadLog(r *musterv1.ReadLogRequest, out musterv1.Agent_ReadLogServer) error {
	if r.GetTx() == "gone" {
		return status.Error(codes.NotFound, "there is none")
	}
	for i, text := range []string{r.GetCluster() + " ", r.GetTx()} {
		if err := out.Send(&musterv1.LogChunk{Offset: r.GetOffset() + int64(i), Data: []byte(text)}); err != nil {
			return err
		}
	}
	if r.GetFollow() {
		<-out.Context().Done()
	}
	return nil
}

func newLogs(n *network) *agents.Logs {
	return &agents.Logs{Cluster: "ml", Dial: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(n.dial)}}
}

func TestOutputIsReadFromTheAgent(t *testing.T) {
	n := newNetwork()
	n.listen(t, "a")
	logs := newLogs(n)
	got, at := "", []int64{}
	err := logs.Read(t.Context(), "n1", "a", grant.LogQuery{Tx: "t1", From: 7}, func(offset int64, data []byte) error {
		got, at = got+string(data), append(at, offset)
		return nil
	})
	if err != nil || got != "ml t1" || len(at) != 2 || at[0] != 7 || at[1] != 8 {
		t.Errorf("%q at %v, %v", got, at, err)
	}
	ignore := func(int64, []byte) error { return nil }
	if err := logs.Read(t.Context(), "n1", "a", grant.LogQuery{Tx: "gone"}, ignore); !errors.Is(err, grant.ErrNoLog) || !strings.Contains(err.Error(), "n1") {
		t.Errorf("output that there is not: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := logs.Read(ctx, "n2", "nowhere", grant.LogQuery{Tx: "t1"}, ignore); err == nil || errors.Is(err, grant.ErrNoLog) || !strings.Contains(err.Error(), "n2 at nowhere") {
		t.Errorf("an agent that is not there: %v", err)
	}
	full := errors.New("the reader is full")
	if err := logs.Read(t.Context(), "n1", "a", grant.LogQuery{Tx: "t1", Follow: true}, func(int64, []byte) error { return full }); !errors.Is(err, full) {
		t.Errorf("a reader that takes no more: %v", err)
	}
}

// The streams of one connection are bounded; the readers beyond are refused at once and
// do not wait for the end of others.
func TestAnAgentHasSoManyReaders(t *testing.T) {
	n := newNetwork()
	n.listen(t, "a")
	logs := newLogs(n)
	ctx, cancel := context.WithCancel(t.Context())
	began, ended := make(chan struct{}), make(chan error)
	for range agents.MostLogReaders {
		go func() {
			ended <- logs.Read(ctx, "n1", "a", grant.LogQuery{Tx: "t1", Follow: true}, func(_ int64, data []byte) error {
				if string(data) == "t1" {
					began <- struct{}{}
				}
				return nil
			})
		}()
	}
	for range agents.MostLogReaders {
		receive(t, "output", began)
	}
	ignore := func(int64, []byte) error { return nil }
	if err := logs.Read(t.Context(), "n1", "a", grant.LogQuery{Tx: "t2"}, ignore); !errors.Is(err, agents.ErrManyLogReaders) {
		t.Errorf("one reader more: %v, want %v", err, agents.ErrManyLogReaders)
	}
	cancel()
	for range agents.MostLogReaders {
		if err := receive(t, "end", ended); err == nil {
			t.Error("a reader that was ended has seen the end of the output")
		}
	}
	if err := logs.Read(t.Context(), "n1", "a", grant.LogQuery{Tx: "t2"}, ignore); err != nil {
		t.Errorf("after the others: %v", err)
	}
}
