package rpc

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
)

// beats answers heartbeats as a test wants, when it wants.
type beats struct {
	schedulerv1.UnimplementedNodeAgentServer
	answers chan *schedulerv1.HeartbeatResponse
}

func (b beats) Heartbeat(stream schedulerv1.NodeAgent_HeartbeatServer) error {
	for a := range b.answers {
		if !news(a) {
			if _, err := stream.Recv(); err != nil {
				return err
			}
		}
		if err := stream.Send(a); err != nil {
			return err
		}
	}
	return errors.New("no more answers")
}

// news reports whether a message answers no heartbeat.
func news(m *schedulerv1.HeartbeatResponse) bool {
	return len(m.GetDirectives()) == 1 && m.GetDirectives()[0].GetType() == DirectiveRenewNow
}

func directive(kind string) *schedulerv1.HeartbeatResponse {
	return &schedulerv1.HeartbeatResponse{LeaseDurationSeconds: 40, Directives: []*schedulerv1.SchedulingDirective{{Type: kind}}}
}

func TestAnAnswerBelongsToItsHeartbeat(t *testing.T) {
	kept := &schedulerv1.HeartbeatResponse{LeaseDurationSeconds: 40}
	for name, c := range map[string]struct {
		answers []*schedulerv1.HeartbeatResponse
		kept    []bool
		err     error
		told    int
	}{
		"each is for the oldest":        {[]*schedulerv1.HeartbeatResponse{kept, directive("renew"), kept}, []bool{true, true, true}, nil, 0},
		"news in between answers none":  {[]*schedulerv1.HeartbeatResponse{directive(DirectiveRenewNow), kept, directive(DirectiveRenewNow), kept}, []bool{true, true}, nil, 2},
		"one that asks to register":     {[]*schedulerv1.HeartbeatResponse{directive(DirectiveRegister), kept}, []bool{false, true}, nil, 0},
		"one without a lease ends it":   {[]*schedulerv1.HeartbeatResponse{kept, {}, kept}, []bool{true, false}, errNoLease, 0},
		"one to register, and no lease": {[]*schedulerv1.HeartbeatResponse{{Directives: directive(DirectiveRegister).Directives}, kept}, []bool{false, true}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, server, b := bufconn.Listen(64<<10), grpc.NewServer(), beats{answers: make(chan *schedulerv1.HeartbeatResponse, len(c.answers))}
				schedulerv1.RegisterNodeAgentServer(server, b)
				go server.Serve(l)
				conn, err := grpc.NewClient("passthrough:///c", grpc.WithTransportCredentials(insecure.NewCredentials()),
					grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				go func() { // three heartbeats are out before the first answer
					time.Sleep(25 * time.Second) // of the bubble's clock
					for _, a := range c.answers {
						b.answers <- a
					}
					close(b.answers)
				}()
				var got []Answer
				told := 0
				err = heartbeats(t.Context(), conn, "n1", 10*time.Second,
					func(context.Context) (Heartbeat, error) { return Heartbeat{Began: time.Now()}, nil }, func(a Answer) {
						if len(a.Directives) == 1 && a.Directives[0].Type == DirectiveRenewNow {
							if a.Kept || a.First || !a.Began.IsZero() {
								t.Errorf("news counts as an answer: %+v", a)
							}
							told++
							return
						}
						got = append(got, a)
					})
				if told != c.told {
					t.Errorf("told %d times of news, want %d", told, c.told)
				}
				if c.err != nil && !errors.Is(err, c.err) || err == nil {
					t.Errorf("error %v, want %v", err, c.err)
				}
				if len(got) != len(c.kept) {
					t.Fatalf("%d answers, want %d", len(got), len(c.kept))
				}
				for i, a := range got {
					if want := start.Add(time.Duration(i) * 10 * time.Second); !a.Began.Equal(want) || a.Kept != c.kept[i] {
						t.Errorf("answer %d: began %v, kept %t, want %v, %t", i, a.Began, a.Kept, want, c.kept[i])
					}
				}
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
				server.Stop()
			})
		})
	}
}

// TestAHeartbeatThatCannotBeMadeIsNotSent: an agent that is stopping sends no
// more, and an empty heartbeat would withdraw its earlier conditions.
func TestAHeartbeatThatCannotBeMadeIsNotSent(t *testing.T) {
	l, server := bufconn.Listen(64<<10), grpc.NewServer()
	b := beats{answers: make(chan *schedulerv1.HeartbeatResponse, 1)}
	b.answers <- &schedulerv1.HeartbeatResponse{LeaseDurationSeconds: 40}
	close(b.answers)
	schedulerv1.RegisterNodeAgentServer(server, b)
	go server.Serve(l)
	defer server.Stop()
	conn, err := grpc.NewClient("passthrough:///c", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = heartbeats(t.Context(), conn, "n1", time.Hour,
		func(context.Context) (Heartbeat, error) { return Heartbeat{}, ErrStopping }, func(a Answer) { t.Errorf("answered %+v", a) })
	if !errors.Is(err, ErrStopping) {
		t.Errorf("error %v, want %v", err, ErrStopping)
	}
}
