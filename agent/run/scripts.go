package run

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/musterd/muster/agent/shim"
)

// runProlog runs the host's prolog. It returns the exit of a member whose prolog has
// failed.
func (r *Runner) runProlog(ctx context.Context, t *task, spec *shim.Spec) (*shim.Exit, error) {
	if t.prolog {
		return nil, nil
	}
	if r.config.Epilog != nil { // also after a prolog that fails
		if err := t.folder.OweEpilog(); err != nil {
			return nil, err
		}
	}
	var err error
	if r.config.Prolog != nil {
		err = r.config.Prolog(ctx, t.folder, t.scriptEnv(spec))
	}
	if ctx.Err() != nil { // the next agent asks again
		return nil, nil
	}
	if t.prolog = true; err == nil {
		return nil, nil
	}
	r.log.Error("prolog_failed", "tx", string(t.id.tx), "member", t.id.member, "error", err)
	e := shim.Exit{Code: 126, Reason: shim.PrologFailed, Message: "prolog: " + err.Error(), At: time.Now()}
	return &e, t.folder.WriteExit(e)
}

// runEpilog runs the host's epilog where the member owes it. done is false where ctx has
// ended before: the next agent goes on.
func (r *Runner) runEpilog(ctx context.Context, t *task, e shim.Exit) (done bool) {
	if r.config.Epilog == nil || !t.folder.OwesEpilog() {
		return true
	}
	spec, err := t.folder.Spec()
	if err != nil { // it was ended before its start
		spec = shim.Spec{}
	}
	env := append(t.scriptEnv(&spec), "MUSTER_EXIT_CODE="+strconv.Itoa(e.Code), "MUSTER_EXIT_REASON="+string(e.Reason))
	fault := ""
	if err := r.config.Epilog(ctx, t.folder, env); err != nil {
		if ctx.Err() != nil {
			return false
		}
		fault = "epilog: " + err.Error()
		r.log.Error("epilog_failed", "tx", string(t.id.tx), "member", t.id.member, "error", err)
	}
	for err := t.folder.SettleEpilog(fault); err != nil; err = t.folder.SettleEpilog(fault) {
		if shim.IsFull(err) { // the log has the fault; the end does not wait for room
			r.makeRoom()
			fault = ""
		}
		r.log.Error("epilog_not_noted", "tx", string(t.id.tx), "member", t.id.member, "error", err, "retry_in", retryAfter)
		pause(ctx, t, retryAfter)
		if ctx.Err() != nil {
			return false
		}
	}
	return true
}

// scriptEnv is the environment of the host's scripts: what Muster has set for the member,
// and nothing that a client can set.
func (t *task) scriptEnv(spec *shim.Spec) []string {
	env := []string{"MUSTER_TRANSACTION=" + string(t.id.tx), "MUSTER_MEMBER=" + strconv.Itoa(t.id.member)}
	if spec.User != nil {
		env = append(env, "MUSTER_UID="+strconv.FormatUint(uint64(spec.User.UID), 10))
	}
	for _, v := range spec.Env {
		if name, _, _ := strings.Cut(v, "="); name == "CUDA_VISIBLE_DEVICES" || strings.HasPrefix(name, "MUSTER_") {
			env = append(env, v)
		}
	}
	return env
}
