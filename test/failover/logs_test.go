package failover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/programs"
)

// The output of a command is followed without a gap and without a repetition, by way of a
// follower, while the leader and the agent of the command are killed and then the follower
// itself.
func TestOutputIsFollowedOverKills(t *testing.T) {
	ml, _ := hostUsers(t)
	c := cluster.Start(t, cluster.Options{
		Agents: 1, Quiet: true, CoordinatorSettings: cluster.Settings{"startsWork": true},
		AgentSettings: func(resource.NodeID) cluster.Settings {
			return cluster.Settings{"work": cluster.Settings{"users": map[string]string{"*": ml}, "allowRoot": ml == "root"}}
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*cluster.Patience)
	defer cancel()
	open, err := os.MkdirTemp("", "muster-output") // the parent of t.TempDir is closed to other users
	if err = errors.Join(err, os.Chmod(open, 0o755)); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(open)
	enough := filepath.Join(open, "enough")
	leader, epoch := c.AwaitLeader(0)
	followers := c.Followers(leader)
	runs(ctx, t, client(t, c, followers...), "ml", "counts", "i=0; until [ -e "+enough+" ]; do echo line $i; i=$((i+1)); sleep 0.02; done; echo last $i")

	lines, ended := make(chan string, 1<<16), make(chan error, 1)
	watcher := client(t, c, followers...)
	go func() {
		var part string
		for piece, err := range watcher.Jobs("ml").Logs(ctx, "counts", sdk.LogOptions{Follow: true}) {
			if err != nil {
				ended <- err
				return
			}
			part += piece.Text
			for line, rest, whole := strings.Cut(part, "\n"); whole; line, rest, whole = strings.Cut(part, "\n") {
				lines <- line
				part = rest
			}
		}
		close(ended)
	}()
	next := 0
	// more waits for some more lines, which continue those before.
	more := func(count int, after string) {
		t.Helper()
		for until := next + count; next < until; next++ {
			select {
			case line := <-lines:
				if line != fmt.Sprintf("line %d", next) {
					t.Fatalf("after %s line %d is %q", after, next, line)
				}
			case err := <-ended:
				t.Fatalf("after %s the output ends at line %d: %v", after, next, err)
			case <-ctx.Done():
				t.Fatalf("after %s the output stands still at line %d", after, next)
			}
		}
	}
	more(20, "the start")
	leader.Kill()
	more(20, "the end of the leader")
	c.Agents[0].Kill()
	c.Agents[0].Start()
	more(100, "a new start of the agent") // what was written meanwhile, too
	c.AwaitLeader(epoch)
	followers[0].Kill()
	leader.Start()
	more(100, "the end of the coordinator that passes the output on")
	if err := os.WriteFile(enough, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var last string
	programs.Eventually(t, cluster.Patience, "the end of the output", func() error {
		for {
			select {
			case line := <-lines:
				if last = line; !strings.HasPrefix(line, "last ") && line != fmt.Sprintf("line %d", next) {
					t.Fatalf("line %d is %q", next, line)
				}
				next++
			case err := <-ended:
				if err != nil {
					t.Fatal(err)
				}
				ended = nil
			default:
				if ended != nil || len(lines) > 0 {
					return errors.New("it goes on")
				}
				return nil
			}
		}
	})
	if want := fmt.Sprintf("last %d", next-1); last != want {
		t.Errorf("the last line is %q, want %q", last, want)
	}
}
