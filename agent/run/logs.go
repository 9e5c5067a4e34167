package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
)

// logEvery is the time between two looks at output that is followed, startEvery between
// two looks for a start.
const (
	logEvery   = 50 * time.Millisecond
	startEvery = 250 * time.Millisecond
)

// ReadLog gives the output of a start, in pieces of at most grant.MaxLogPiece bytes,
// until the work ends (Follow), ctx ends, or give fails. A reader that follows waits for
// the start as long as mayStart reports true.
func (r *Runner) ReadLog(ctx context.Context, q grant.LogQuery, mayStart func(context.Context) (bool, error), give func(at int64, data []byte) error) error {
	f := r.newTask(identity{q.Tx, q.Member, q.Restart}).folder
	look := time.NewTimer(time.Hour)
	defer look.Stop()
	piece := make([]byte, grant.MaxLogPiece)
	for at := q.From; ; {
		// The order counts: output that was written before the end is read after it.
		ended, err := r.hasEnded(ctx, q, f, mayStart)
		if err != nil {
			return err
		}
		wait := logEvery
		from, n, err := f.ReadLog(at, piece)
		switch {
		case errors.Is(err, os.ErrNotExist) && !ended:
			wait = startEvery
		case err != nil:
			return fmt.Errorf("output of %s, member %d: %w", q.Tx, q.Member, err)
		}
		if n > 0 {
			if err := give(from, piece[:n]); err != nil {
				return err
			}
			at = from + int64(n)
			continue
		}
		if ended {
			return nil
		}
		look.Reset(wait)
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hasEnded reports whether no more output comes, as far as the reader waits for more.
func (r *Runner) hasEnded(ctx context.Context, q grant.LogQuery, f shim.Folder, mayStart func(context.Context) (bool, error)) (bool, error) {
	if _, err := f.Exit(); err == nil {
		return true, nil
	}
	if _, err := os.Stat(string(f)); err == nil {
		return !q.Follow, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	if q.Follow {
		if may, err := mayStart(ctx); may || err != nil {
			return false, err
		}
		if _, err := os.Stat(string(f)); err == nil { // it was started and has ended meanwhile
			return false, nil
		}
	}
	return false, fmt.Errorf("%s, member %d, start %d: %w", q.Tx, q.Member, q.Restart, grant.ErrNoLog)
}
