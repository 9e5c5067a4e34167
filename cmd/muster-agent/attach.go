package main

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/attach"
	"github.com/musterd/muster/agent/users"
	"github.com/musterd/muster/resource"
)

// attachConfig lets launchers outside of Muster attach their processes to grants.
type attachConfig struct {
	// Socket is the path of the socket; "": there is none.
	Socket string `json:"socket"`
	// Users has the user of each tenant who may attach; "*" stands for all others. None:
	// those of work.users.
	Users map[string]string `json:"users"`
}

// mostSocket bounds the path of a socket, as Linux does.
const mostSocket = 107

// check returns how launchers attach, nil where they do not. work is the table of
// work.users, nil for none.
func (c attachConfig) check(work *users.Table, lookup func(name string) (users.Account, error)) (*agent.AttachConfig, error) {
	switch {
	case c.Socket == "" && len(c.Users) > 0:
		first := slices.Min(slices.Collect(maps.Keys(c.Users)))
		return nil, fmt.Errorf("attach.users.%s: user %.80q, and attach.socket names no socket; name the socket, or remove the users", first, c.Users[first])
	case c.Socket == "":
		return nil, nil
	case !filepath.IsAbs(c.Socket) || filepath.Clean(c.Socket) != c.Socket || len(c.Socket) > mostSocket:
		return nil, fmt.Errorf("attach.socket: %.120q is no absolute path of at most %d bytes", c.Socket, mostSocket)
	}
	a := &agent.AttachConfig{Socket: c.Socket, Users: work, Hierarchy: attach.Hierarchy()}
	if len(c.Users) == 0 {
		return a, nil
	}
	var err error
	if a.Users, err = users.NewTable(c.Users, false, lookup); err != nil {
		return nil, fmt.Errorf("attach.users.%s", strings.ReplaceAll(err.Error(), "\n", "\nattach.users."))
	}
	return a, nil
}

// attachment are the flags of both commands.
type attachment struct {
	socket, transaction string
	member              int
}

func (a *attachment) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&a.transaction, "transaction", "", "the transaction, as the name of its assignment file has it (required)")
	f.IntVar(&a.member, "member", 0, "the member of the transaction")
	f.StringVar(&a.socket, "socket", attach.DefaultSocket, "the agent's socket, attach.socket of its configuration")
}

func (a *attachment) request() (attach.Request, error) {
	if a.transaction == "" {
		return attach.Request{}, usageError{errors.New("--transaction: want the name of a transaction")}
	}
	if a.socket == "" || len(a.socket) > mostSocket {
		return attach.Request{}, usageError{fmt.Errorf("--socket: %.120q: want a path of 1 to %d bytes", a.socket, mostSocket)}
	}
	return attach.Request{Transaction: resource.TxID(a.transaction), Member: a.member}, nil
}

// answered judges the answer of the agent: a request that is wrong is a mistake of the
// caller.
func answered(err error) error {
	var r *attach.Refused
	if errors.As(err, &r) && (r.Status == 422 || r.Status == 400) {
		return usageError{err}
	}
	return err
}

func newAttach() *cobra.Command {
	var a attachment
	var pid int
	var cgroup string
	cmd := &cobra.Command{
		Use: "attach --transaction TX (--pid N | --cgroup PATH)", Short: "Attach a process or a cgroup of this host to a grant, which then lasts until nothing of it runs", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := a.request()
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("pid") == cmd.Flags().Changed("cgroup") {
				return usageError{fmt.Errorf("--pid %d and --cgroup %.120q: want one of both flags, either a process or a cgroup", pid, cgroup)}
			}
			if q.PID, q.Cgroup = pid, cgroup; cgroup == "self" {
				if q.Cgroup, err = attach.OwnCgroup(attach.Hierarchy()); err != nil {
					return err
				}
			}
			return answered(attach.Attach(cmd.Context(), a.socket, q))
		},
	}
	a.add(cmd)
	cmd.Flags().IntVar(&pid, "pid", 0, "the process; what it starts counts too")
	cmd.Flags().StringVar(&cgroup, "cgroup", "", "the folder of a cgroup below /sys/fs/cgroup, or \"self\": that of this command, as in a service of systemd")
	return cmd
}

func newDone() *cobra.Command {
	var a attachment
	var status string
	cmd := &cobra.Command{
		Use: "done --transaction TX --status STATUS", Short: "Report the exit status of the work of a grant, which ends with the last process that is attached", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := a.request()
			if err != nil {
				return err
			}
			code, err := attach.ParseStatus(status)
			if err != nil {
				return usageError{fmt.Errorf("--status: %w", err)}
			}
			q.Code = &code
			return answered(attach.Done(cmd.Context(), a.socket, q))
		},
	}
	a.add(cmd)
	cmd.Flags().StringVar(&status, "status", "", "an exit code of 0 to 255, or the name of a signal, such as KILL (required)")
	return cmd
}
