package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// LogOptions select the output of a job's commands.
type LogOptions struct {
	// Member is the index of one member; nil is all members.
	Member *int
	// Follow: the output ends with the job. Otherwise it ends with the last byte that was written so far.
	Follow bool
}

// Logs yields the output of the commands of a job's members: the pieces of one start of
// a member in order, those of different members as they come. It goes on at another
// server where one does not answer; no byte comes twice. The last pair has an error,
// unless the output has come to its end.
func (j Jobs) Logs(ctx context.Context, name string, o LogOptions) iter.Seq2[api.LogChunk, error] {
	return func(yield func(api.LogChunk, error) bool) {
		query := url.Values{"follow": {strconv.FormatBool(o.Follow)}}
		if o.Member != nil {
			query.Set("member", strconv.Itoa(*o.Member))
		}
		r := &logReader{have: map[logStart]int64{}, yield: func(c api.LogChunk) bool { return yield(c, nil) }}
		r.watching = watching[api.LogChunk]{client: j.client, path: j.at(name, "/logs"), query: query}
		r.line = r.take
		if err := r.run(ctx); err != nil {
			yield(api.LogChunk{}, err)
		}
	}
}

// logStart is one start of one member.
type logStart struct {
	member      int32
	transaction resource.TxID
}

// logReader takes the lines of a job's output.
type logReader struct {
	watching[api.LogChunk]
	have  map[logStart]int64 // the offset behind the bytes that were yielded
	yield func(api.LogChunk) bool
}

// take takes one line. A server that is asked again sends the output from its
// beginning: the bytes that were yielded are cut off.
func (r *logReader) take(text json.RawMessage) error {
	var line watchLine
	if err := json.Unmarshal(text, &line); err != nil {
		return &malformedError{fmt.Errorf("output: a line that cannot be read: %w", err)}
	}
	switch line.Type {
	case "END":
		r.stopped = true
	case "ERROR":
		status := new(api.Status)
		if err := json.Unmarshal(line.Object, status); err != nil {
			return &malformedError{fmt.Errorf("output: an error that cannot be read: %w", err)}
		}
		return status
	case "OUTPUT":
		var piece api.LogChunk
		if err := json.Unmarshal(line.Object, &piece); err != nil {
			return &malformedError{fmt.Errorf("output: a piece that cannot be read: %w", err)}
		}
		return r.give(piece)
	}
	return nil
}

// give yields the part of a piece that is new.
func (r *logReader) give(piece api.LogChunk) error {
	data, err := piece.Bytes()
	if err != nil {
		return &malformedError{fmt.Errorf("output: data of a piece: %w", err)}
	}
	if piece.Message == "" {
		start := logStart{piece.Member, piece.Transaction}
		end := piece.Offset + int64(len(data))
		old := r.have[start] - piece.Offset
		switch {
		case end <= r.have[start]:
			return nil
		case old > 0:
			piece.Offset, piece.Text, piece.Data = piece.Offset+old, "", ""
			piece.SetBytes(data[old:])
		}
		r.have[start] = end
	}
	if !r.yield(piece) {
		r.stopped = true
	}
	return nil
}
