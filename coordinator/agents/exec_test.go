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
	"github.com/musterd/muster/resource"
)

// Exec refuses by the name of the transaction; else it hands each message back as output.
func (s *server) Exec(stream musterv1.Agent_ExecServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	open := first.GetOpen()
	switch open.GetTx() {
	case "over":
		return status.Error(codes.FailedPrecondition, "it has ended")
	case "full":
		return status.Error(codes.ResourceExhausted, "too many")
	case "old":
		return status.Error(codes.Unimplemented, "unknown method Exec")
	case "silent":
		return stream.Send(&musterv1.ExecAnswer{Message: &musterv1.ExecAnswer_Taken{Taken: 1}})
	}
	send := func(m *musterv1.ExecAnswer) error { return stream.Send(m) }
	_ = send(&musterv1.ExecAnswer{Message: &musterv1.ExecAnswer_Opened{Opened: true}})
	_ = send(&musterv1.ExecAnswer{Message: &musterv1.ExecAnswer_Error{Error: []byte(open.GetCluster() + " " + strings.Join(open.GetArgs(), " "))}})
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		switch m := m.GetMessage().(type) {
		case *musterv1.ExecRequest_Input:
			_ = send(&musterv1.ExecAnswer{Message: &musterv1.ExecAnswer_Output{Output: m.Input}})
			_ = send(&musterv1.ExecAnswer{Message: &musterv1.ExecAnswer_Taken{Taken: int32(len(m.Input))}})
		case *musterv1.ExecRequest_Window:
			_ = send(&musterv1.ExecAnswer{Message: &musterv1.ExecAnswer_Output{Output: []byte{byte(m.Window.GetRows()), byte(m.Window.GetColumns())}}})
		case *musterv1.ExecRequest_Signal:
			return send(&musterv1.ExecAnswer{Message: &musterv1.ExecAnswer_Exit{Exit: &musterv1.ExecExit{Code: 128 + m.Signal, Signal: m.Signal, Reason: "Completed"}}})
		case *musterv1.ExecRequest_End:
			return send(&musterv1.ExecAnswer{Message: &musterv1.ExecAnswer_Exit{Exit: &musterv1.ExecExit{Reason: "Won"}}})
		}
	}
}

func newExecs(n *network) *agents.Execs {
	return &agents.Execs{Cluster: "ml", Dial: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(n.dial)}}
}

func TestASessionHandsMessagesOn(t *testing.T) {
	n := newNetwork()
	n.listen(t, "a")
	s, err := newExecs(n).Open(t.Context(), "n1", "a", grant.Exec{Tx: "t1", Args: []string{"cat", "-u"}, Input: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, in := range []grant.ExecInput{{Data: []byte("one")}, {Window: grant.Window{Rows: 5, Columns: 7}}, {Signal: 15}} {
		if err := s.Send(in); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []grant.ExecOutput{{Data: []byte("ml cat -u"), Error: true}, {Data: []byte("one")}, {Taken: 3}, {Data: []byte{5, 7}}} {
		got, err := s.Receive()
		if err != nil || string(got.Data) != string(want.Data) || got.Error != want.Error || got.Taken != want.Taken {
			t.Errorf("message %d is %+v, %v, want %+v", i, got, err, want)
		}
	}
	if got, err := s.Receive(); err != nil || got.Exit == nil || *got.Exit != (grant.ExecExit{Code: 143, Signal: 15, Reason: "Completed"}) {
		t.Errorf("the end is %+v, %v", got, err)
	}
	if _, err := s.Receive(); err == nil {
		t.Error("there is a message behind the end")
	}
}

// TestALyingAgentHurtsItsSessionAlone: a message beyond its limits ends the session, and the
// next one goes on.
func TestALyingAgentHurtsItsSessionAlone(t *testing.T) {
	n := newNetwork()
	n.listen(t, "a")
	x := newExecs(n)
	s, err := x.Open(t.Context(), "n1", "a", grant.Exec{Tx: "t1", Args: []string{"sh"}})
	if err != nil {
		t.Fatal(err)
	}
	other, err := x.Open(t.Context(), "n1", "a", grant.Exec{Tx: "t2", Args: []string{"sh"}})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := s.Send(grant.ExecInput{End: true}); err != nil { // which that agent answers with a reason that there is not
		t.Fatal(err)
	}
	for err == nil {
		_, err = s.Receive()
	}
	if !strings.Contains(err.Error(), `"Won"`) {
		t.Errorf("the session has ended with %v", err)
	}
	s.Close()
	s.Close() // again
	if err := other.Send(grant.ExecInput{Data: []byte("x")}); err != nil {
		t.Error(err)
	}
	if _, err := other.Receive(); err != nil {
		t.Errorf("the other session has ended: %v", err)
	}
}

func TestWhyAnAgentOpensNoSession(t *testing.T) {
	n := newNetwork()
	n.listen(t, "a")
	x := newExecs(n)
	for tx, want := range map[string]error{"over": grant.ErrNotRunning, "full": grant.ErrManySessions, "old": grant.ErrNoExec} {
		if _, err := x.Open(t.Context(), "n1", "a", grant.Exec{Tx: resource.TxID(tx), Args: []string{"sh"}}); !errors.Is(err, want) || !strings.Contains(err.Error(), "n1") {
			t.Errorf("%s: %v, want %v", tx, err, want)
		}
	}
	if _, err := x.Open(t.Context(), "n1", "a", grant.Exec{Tx: "silent", Args: []string{"sh"}}); err == nil || !strings.Contains(err.Error(), "has not opened") {
		t.Errorf("an agent that does not open: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := x.Open(ctx, "n2", "nowhere", grant.Exec{Tx: "t", Args: []string{"sh"}}); err == nil || !strings.Contains(err.Error(), "n2 at nowhere") {
		t.Errorf("an agent that is not there: %v", err)
	}
}

// The streams of one connection are bounded; sessions beyond are refused at once, and the end
// of one makes room.
func TestAnAgentHasSoManySessions(t *testing.T) {
	n := newNetwork()
	n.listen(t, "a")
	x := newExecs(n)
	var all []grant.ExecSession
	for range agents.MostExecs {
		s, err := x.Open(t.Context(), "n1", "a", grant.Exec{Tx: "t", Args: []string{"sh"}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		all = append(all, s)
	}
	if _, err := x.Open(t.Context(), "n1", "a", grant.Exec{Tx: "t", Args: []string{"sh"}}); !errors.Is(err, grant.ErrManySessions) {
		t.Errorf("one more: %v", err)
	}
	all[0].Close()
	s, err := x.Open(t.Context(), "n1", "a", grant.Exec{Tx: "t", Args: []string{"sh"}})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}
