package service

import (
	"context"
	"fmt"
	"strconv"

	"github.com/musterd/muster/api"
)

// Logs is the output of the commands of jobs, as the agents of their nodes keep it.
// Every coordinator serves it by itself.
type Logs interface {
	// JobLogs opens the output of a job's members, which the caller closes. It is
	// refused with 422 for a job without a command, and for a member that the job does
	// not have. Each opening has an entry in the audit.
	JobLogs(ctx context.Context, namespace, name string, q LogQuery) (LogStream, error)
}

// LogQuery selects output. The zero value selects that of member 0, as far as there
// is any.
type LogQuery struct {
	// AllMembers selects every member of the job; Member is one of them otherwise.
	AllMembers bool
	Member     int
	// Follow: the output ends with the job, and waits for the start of members.
	// Otherwise the output ends with the last byte that was written so far.
	Follow bool
}

// LogStream is the output of members. One goroutine uses it.
type LogStream interface {
	// Next waits for the next piece. The error is io.EOF behind the last one, an
	// *api.Status, or the context's.
	Next(ctx context.Context) (*api.LogChunk, error)
	Close()
}

// LogParameters are the names of the parameters of a LogQuery.
var LogParameters = []string{"follow", "member"}

// Set takes a parameter of a query, as a text.
func (q *LogQuery) Set(name, value string) (err error) {
	switch name {
	case "follow":
		if q.Follow, err = strconv.ParseBool(value); err != nil {
			return fmt.Errorf("want true or false")
		}
	case "member":
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < 0 {
			return fmt.Errorf("want the index of a member, from 0")
		}
		q.AllMembers, q.Member = false, int(n)
	}
	return nil
}
