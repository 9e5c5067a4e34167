package grpcapi

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/test/resttest"
)

func input(text string) *apiv1.ExecRequest {
	return &apiv1.ExecRequest{Message: &apiv1.ExecRequest_Input{Input: []byte(text)}}
}

func opening(o *apiv1.ExecOpen) *apiv1.ExecRequest {
	return &apiv1.ExecRequest{Message: &apiv1.ExecRequest_Open{Open: o}}
}

// TestASessionOverGRPC: messages in both directions, in order, up to the exit, or a refusal
// that names the field.
func TestASessionOverGRPC(t *testing.T) {
	cluster := resttest.New(time.Now)
	cluster.SetOutput("ml", "train")
	jobs := apiv1.NewJobsClient(connect(t, door(t, cluster, nil)))
	train := &apiv1.ExecOpen{Namespace: "ml", Name: "train", Command: []string{"cat", "-u"}, Input: true}
	for name, c := range map[string]struct {
		send []*apiv1.ExecRequest
		want string // the answers, and the end
	}{
		"input to its end": {
			[]*apiv1.ExecRequest{opening(train), input("one"), {Message: &apiv1.ExecRequest_End{End: true}}},
			"opened|output cat -u\n|output one|taken 3|exit 0 Completed|end",
		},
		"input for a command that has ended": {
			[]*apiv1.ExecRequest{opening(&apiv1.ExecOpen{Namespace: "ml", Name: "train", Command: []string{"head"}, Input: true}), input("one"), input("two")},
			"opened|output head\n|exit 0 Completed|end",
		},
		"an error and a code": {
			[]*apiv1.ExecRequest{opening(&apiv1.ExecOpen{Namespace: "ml", Name: "train", Command: []string{"false"}})},
			"opened|output false\n|error failed\n|exit 1 Completed|end",
		},
		"a window and a signal": {
			[]*apiv1.ExecRequest{
				opening(&apiv1.ExecOpen{Namespace: "ml", Name: "train", Command: []string{"sh"}, Tty: true, Window: &apiv1.ExecWindow{Rows: 24, Columns: 80}}),
				{Message: &apiv1.ExecRequest_Window{Window: &apiv1.ExecWindow{Rows: 5, Columns: 7}}}, {Message: &apiv1.ExecRequest_Signal{Signal: 15}},
			},
			"opened|output sh\n|output resized\n|exit 143 Completed|end",
		},
		"no opening":                  {[]*apiv1.ExecRequest{input("one")}, "InvalidArgument open: absent"},
		"no command":                  {[]*apiv1.ExecRequest{opening(&apiv1.ExecOpen{Namespace: "ml", Name: "train"})}, "InvalidArgument command: absent"},
		"the own command and another": {[]*apiv1.ExecRequest{opening(&apiv1.ExecOpen{Namespace: "ml", Name: "train", Command: []string{"sh"}, Attach: true})}, "InvalidArgument command: given together with attach"},
		"a negative index":            {[]*apiv1.ExecRequest{opening(&apiv1.ExecOpen{Namespace: "ml", Name: "train", Command: []string{"sh"}, Member: -1})}, "InvalidArgument member: -1"},
		"another job":                 {[]*apiv1.ExecRequest{opening(&apiv1.ExecOpen{Namespace: "ml", Name: "eval", Command: []string{"sh"}})}, "NotFound job eval"},
		"a window too large": {
			[]*apiv1.ExecRequest{opening(&apiv1.ExecOpen{Namespace: "ml", Name: "train", Command: []string{"sh"}, Window: &apiv1.ExecWindow{Rows: 1 << 16}})},
			"InvalidArgument window: 65536 rows",
		},
		"a signal that is none": {[]*apiv1.ExecRequest{opening(train), {Message: &apiv1.ExecRequest_Signal{Signal: 65}}}, "opened|Unavailable the session is lost, and its command is ended: signal: 65"},
		"too much at once":      {[]*apiv1.ExecRequest{opening(train), input(strings.Repeat("x", 32<<10+1))}, "opened|Unavailable the session is lost, and its command is ended: input: 32769 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			stream, err := jobs.Exec(bearing(t, "ml"))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range c.send {
				if err := stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
			}
			var all []string
			for {
				m, err := stream.Recv()
				if errors.Is(err, io.EOF) {
					all = append(all, "end")
					break
				}
				if err != nil {
					s := status.Convert(err)
					if s.Code() != codes.Unknown {
						all = append(all, s.Code().String()+" "+s.Message())
					}
					break
				}
				switch m := m.GetMessage().(type) {
				case *apiv1.ExecAnswer_Opened:
					all = append(all, "opened")
				case *apiv1.ExecAnswer_Output:
					all = append(all, "output "+string(m.Output))
				case *apiv1.ExecAnswer_Error:
					all = append(all, "error "+string(m.Error))
				case *apiv1.ExecAnswer_Taken:
					all = append(all, fmt.Sprint("taken ", m.Taken))
				case *apiv1.ExecAnswer_Exit:
					all = append(all, fmt.Sprintf("exit %d %s", m.Exit.GetCode(), m.Exit.GetReason()))
				}
			}
			if strings.HasPrefix(all[len(all)-1], "Unavailable") { // a lost session: the output may be missing
				all = slices.DeleteFunc(all, func(answer string) bool { return strings.HasPrefix(answer, "output ") })
			}
			if got := strings.Join(all, "|"); !strings.HasPrefix(got, c.want) || strings.HasSuffix(c.want, "end") && got != c.want {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
}
