package service

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/grant"
)

// Execs run further commands in members of jobs. Every coordinator serves them by itself.
type Execs interface {
	// JobExec opens a session in a member of a job, which the caller closes; a session
	// ends with ctx, too. JobExec is refused with 422 for a job without a command, and for
	// a member that the job does not have, or that takes no input, and with 409 for a member
	// that does not run, or whose input another session has.
	// Each opening has an entry in the audit.
	JobExec(ctx context.Context, namespace, name string, q ExecQuery) (grant.ExecSession, error)
}

// ExecQuery is the command of a session.
type ExecQuery struct {
	Member int
	// Attach: the session is with the member's own command, see grant.Exec.
	Attach  bool
	From    *int64
	Command []string // with its arguments
	// TTY: the command has a terminal of this size and kind.
	TTY    bool
	Window grant.Window
	Term   string
	// Input: the caller sends the standard input.
	Input bool
}

// ExecParameters are the names of the parameters of an ExecQuery.
var ExecParameters = []string{"attach", "columns", "command", "from", "input", "member", "rows", "term", "tty"}

// ExecQueryOf reads the parameters of a request. command may be given several times.
func ExecQueryOf(raw string) (q ExecQuery, status *api.Status) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, api.Errorf(http.StatusBadRequest, "query %q: %v", Clip(raw), err)
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		all := values[name]
		switch {
		case !slices.Contains(ExecParameters, name):
			return q, api.Errorf(http.StatusBadRequest, "unknown query parameter %q: exec takes %s", Clip(name), strings.Join(ExecParameters, ", "))
		case name == "command":
			q.Command = all
			continue
		case len(all) > 1:
			return q, api.Errorf(http.StatusBadRequest, "query parameter %q is given %d times", name, len(all))
		}
		if err := q.set(name, all[0]); err != nil {
			return q, api.Errorf(http.StatusBadRequest, "query parameter %s=%q: %v", name, Clip(all[0]), err)
		}
	}
	return q, q.Check()
}

func (q *ExecQuery) set(name, value string) error {
	number := func(most int) (int, error) {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > most {
			return 0, fmt.Errorf("want a number from 0 to %d", most)
		}
		return n, nil
	}
	var n int
	var err error
	switch name {
	case "member":
		if q.Member, err = number(1<<31 - 1); err != nil {
			err = fmt.Errorf("want the index of a member, from 0")
		}
	case "rows":
		n, err = number(1<<16 - 1)
		q.Window.Rows = uint16(n)
	case "columns":
		n, err = number(1<<16 - 1)
		q.Window.Columns = uint16(n)
	case "term":
		q.Term = value
	case "from":
		from, bad := strconv.ParseInt(value, 10, 64)
		if q.From = &from; bad != nil || from < 0 {
			err = fmt.Errorf("want an offset in the output, from 0")
		}
	case "tty", "input", "attach":
		flag := map[string]*bool{"tty": &q.TTY, "input": &q.Input, "attach": &q.Attach}[name]
		if *flag, err = strconv.ParseBool(value); err != nil {
			err = fmt.Errorf("want true or false")
		}
	}
	return err
}

// Check returns why a query cannot be served.
func (q *ExecQuery) Check() *api.Status {
	sum := 0
	for i, arg := range q.Command {
		sum += len(arg)
		if strings.ContainsRune(arg, 0) {
			return api.Errorf(http.StatusUnprocessableEntity, "command[%d]: it has a zero byte, which no argument can have", i)
		}
	}
	switch {
	case q.Attach && len(q.Command) > 0:
		return api.Errorf(http.StatusUnprocessableEntity, "command: given together with attach, which is a session with the member's own command: leave one out")
	case q.Attach && (q.TTY || q.Term != ""):
		return api.Errorf(http.StatusUnprocessableEntity, "tty: given together with attach: the member's own command has a terminal where tty of its job is true; leave tty and term out")
	case q.From != nil && (!q.Attach || *q.From < 0):
		return api.Errorf(http.StatusUnprocessableEntity, "from: %d: want an offset in the output, from 0, together with attach", *q.From)
	case !q.Attach && (len(q.Command) == 0 || q.Command[0] == ""):
		return api.Errorf(http.StatusUnprocessableEntity, "command: absent: name the command to run")
	case len(q.Command) > grant.MaxExecArgs:
		return api.Errorf(http.StatusUnprocessableEntity, "command: %d arguments, the limit is %d", len(q.Command), grant.MaxExecArgs)
	case sum > grant.MaxExecBytes:
		return api.Errorf(http.StatusUnprocessableEntity, "command: %d bytes, the limit is %d", sum, grant.MaxExecBytes)
	case len(q.Term) > grant.MaxTerm || strings.ContainsFunc(q.Term, notOfTerm):
		return api.Errorf(http.StatusUnprocessableEntity, "term: %q: want at most %d letters, digits and -+._", Clip(q.Term), grant.MaxTerm)
	case q.Member < 0:
		return api.Errorf(http.StatusBadRequest, "member: %d: want the index of a member, from 0", q.Member)
	}
	return nil
}

// notOfTerm reports whether a name of terminfo(5) has no such character.
func notOfTerm(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-+._", r)
}

// Lost is the status that ends a session before its command has ended.
func (q *ExecQuery) Lost(why error) *api.Status {
	if q.Attach {
		return api.Errorf(http.StatusServiceUnavailable, "the session is lost, and its command goes on: %v", why)
	}
	return api.Errorf(http.StatusServiceUnavailable, "the session is lost, and its command is ended: %v", why)
}
