package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// object is an object of one of the kinds.
type object struct {
	sdk.Object
	// raw is the document that it was read from, nil where a server answered it.
	raw []byte
}

// objectOf returns a value of the API as an object.
func objectOf(documentKind string, value any) object {
	k, _ := sdk.KindOfDocument(documentKind)
	return object{Object: sdk.Object{Kind: k, Value: value}}
}

// as returns the object as its own type, or nil where it is of another kind.
func as[T any](o object) *T {
	v, _ := o.Value.(*T)
	return v
}

func (o object) kind() kind { return kind(o.Kind.Name) }

func (o object) meta() *api.ObjectMeta { return o.Meta() }

func (o object) document() any { return o.Value }

// state is the phase and the one line about it; only work has them.
func (o object) state() (api.Phase, string) {
	if a := as[api.Allocation](o); a != nil {
		return a.Status.Phase, a.Status.Message
	}
	if j := as[api.Job](o); j != nil {
		return j.Status.Phase, j.Status.Message
	}
	return "", ""
}

func (o object) queuePosition() int {
	if a := as[api.Allocation](o); a != nil {
		return a.Status.QueuePosition
	}
	if j := as[api.Job](o); j != nil {
		return j.Status.QueuePosition
	}
	return 0
}

// String is "kind namespace/name".
func (o object) String() string {
	m := o.meta()
	if m.Namespace == "" {
		return fmt.Sprintf("%s %s", o.kind(), m.Name)
	}
	return fmt.Sprintf("%s %s/%s", o.kind(), m.Namespace, m.Name)
}

// at returns the calls of a kind in a namespace.
func (a *app) at(k kind, namespace string) sdk.Resource {
	return a.client.Resource(k.client(), namespace)
}

// fetch gets one object.
func (a *app) fetch(ctx context.Context, k kind, namespace, name string, g sdk.GetOptions) (object, error) {
	o, err := a.at(k, namespace).Get(ctx, name, g)
	return object{Object: o}, a.hint(k, namespace, err)
}

// remove deletes one object and returns its last state.
func (a *app) remove(ctx context.Context, k kind, namespace, name string, options api.DeleteOptions) (object, error) {
	o, err := a.at(k, namespace).Delete(ctx, name, options)
	return object{Object: o}, a.hint(k, namespace, err)
}

// hint says where to look for a quota that is not there.
func (a *app) hint(k kind, namespace string, err error) error {
	if err != nil && k.isQuota() && isNotFound(err) {
		where := ""
		if k.namespaced() {
			where = a.inNamespace(namespace)
		}
		return fmt.Errorf("%w; muster quota get %s%s shows what there is", err, k.plural(), where)
	}
	return err
}

// completeTargets offers kinds, then the names of that kind.
func (a *app) completeTargets(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeKinds(allKinds(), cmd, args)
}

// completeQuotas is completeTargets for muster quota.
func (a *app) completeQuotas(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeKinds(quotaKinds(), cmd, args)
}

func (a *app) completeKinds(of []kind, cmd *cobra.Command, args []string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return plurals(of), cobra.ShellCompDirectiveNoFileComp
	}
	k, err := parseKind(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return a.completeNames(k)(cmd, nil, "")
}

// mostCompletions bounds the names that completion asks for: one page of the
// server.
const mostCompletions = 500

// completeNames offers the names of one kind, when the server answers.
func (a *app) completeNames(k kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completionTimeout)
		defer cancel()
		if a.connect() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		l, err := a.list(ctx, k, sdk.ListOptions{Limit: mostCompletions})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := make([]string, 0, len(l.objects))
		for _, o := range l.objects {
			names = append(names, o.meta().Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
