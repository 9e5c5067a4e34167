package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func (a *app) applyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create objects, or change them to what files say",
		Long: "apply reads documents as submit does, creates the objects that do not exist, changes the others\n" +
			"and says for each: created, configured or unchanged. It stops at the first failure.\n\n" +
			"Quotas are replaced as a whole. Of allocations and jobs the labels and annotations become\n" +
			"exactly those of the document; suspend, queue and parallelism of the spec are set where the\n" +
			"document has them, and the other fields are fixed once they are submitted. Of nodes the labels,\n" +
			"annotations, taints and unschedulable that the document has are set; what it leaves out stays.\n" +
			"A document that differs and has a resourceVersion is refused where the object has changed since.",
		Example: "  muster apply -f examples/quota-tree.json -f team/\n  muster get job train -o yaml | sed s/v1/v2/ | muster apply -f -",
		Args:    arguments(cobra.NoArgs),
	}
	a.applies(cmd, "objects are applied to one namespace", func(object) error { return nil })
	return cmd
}

// applies lets a command apply files, unless may refuses an object of them. oneNamespace
// says why all namespaces are no place for that.
func (a *app) applies(cmd *cobra.Command, oneNamespace string, may func(object) error) {
	var files []string
	var dryRun dryRun
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case len(files) == 0:
			return usagef("name a file with -f, or -f - for standard input")
		case a.allNamespaces:
			return usagef("-A: %s", oneNamespace)
		}
		if err := a.connect(); err != nil {
			return err
		}
		objects, err := a.read(files)
		if err != nil {
			return err
		}
		for _, o := range objects {
			if err := may(o); err != nil {
				return err
			}
		}
		return a.applyAll(cmd.Context(), objects, dryRun.client())
	}
	a.fileFlags(cmd, &files, "apply")
	a.nameFlags(cmd)
	cmd.Flags().Var(&dryRun, "dry-run", "none, or client: say what would change, and change nothing")
}

// applyAll applies in order and stops at the first failure, since later
// documents may need it; the objects before stay applied. A dry run stops before each
// change.
func (a *app) applyAll(ctx context.Context, objects []object, dry bool) error {
	var applied []object
	var failure error
	for _, o := range objects {
		got, verb, err := a.apply(ctx, o, dry)
		if err != nil {
			failure = fmt.Errorf("apply %s: %w", o, err)
			if left := len(objects) - len(applied) - 1; left > 0 {
				failure = fmt.Errorf("%w (%s behind it: not applied)", failure, plural(fmt.Sprint(left), "document"))
			}
			break
		}
		applied = append(applied, got)
		if dry {
			verb += " (dry run)"
		}
		if a.isTable() {
			a.printf("%s %s\n", got, verb)
		}
		if !dry {
			a.warn(ctx, got)
		}
	}
	if !a.isTable() && len(applied) > 0 {
		failure = errors.Join(failure, a.print(applied, listOf(applied)))
	}
	return failure
}

// apply creates one object or changes it where it differs. A change that loses
// to another one is computed anew, unless the document names the version that it
// is for.
func (a *app) apply(ctx context.Context, o object, dry bool) (got object, verb string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	m := o.meta()
	given := m.ResourceVersion
	for attempt := 1; ; attempt++ {
		current, err := a.fetch(ctx, o.kind(), m.Namespace, m.Name, getOptions)
		switch {
		case isNotFound(err) && !o.Kind.Created:
			return o, "", fmt.Errorf("%w: %w", err, errNotCreated)
		case isNotFound(err) && dry:
			return o, "created", nil
		case isNotFound(err):
			got, err = a.create(ctx, o, 0)
			return got, "created", err
		case err != nil:
			return o, "", err
		}
		change, err := changeOf(o, current)
		switch {
		case err != nil:
			return o, "", err
		case change == nil:
			return current, "unchanged", nil
		case dry:
			return o, "configured", nil
		}
		if given == "" {
			given = current.meta().ResourceVersion
		}
		got, err = a.carryOut(ctx, o, change, given)
		if !isConflict(err) {
			return got, "configured", err
		}
		if versionIn(o.raw) != "" || attempt == editAttempts {
			where := ""
			if m.Namespace != "" {
				where = " -n " + m.Namespace
			}
			return got, "", fmt.Errorf("%w; look at it with muster get %s %s -o yaml%s and apply again", err, o.kind(), m.Name, where)
		}
		given = ""
	}
}

func isConflict(err error) bool {
	var status *api.Status
	return errors.As(err, &status) && status.Code == http.StatusConflict
}

// changeOf returns the merge patch that makes an object equal to a document,
// nil where it is so already. The patch of a kind that is replaced is not used.
func changeOf(o, current object) (*patch, error) {
	switch {
	case o.Kind.Replaced && bytes.Equal(essence(o), essence(current)):
		return nil, nil
	case o.Kind.Replaced:
		return &patch{}, nil
	case as[api.Node](o) != nil:
		return nodeChange(o, as[api.Node](current))
	}
	return workChange(o, current)
}

// carryOut makes a change from one version of the object.
func (a *app) carryOut(ctx context.Context, o object, change *patch, version string) (object, error) {
	at := a.at(o.kind(), o.meta().Namespace)
	if o.Kind.Replaced {
		o.meta().ResourceVersion = version
		got, err := at.Replace(ctx, o.Object)
		return object{Object: got}, err
	}
	change.Metadata["resourceVersion"] = version
	body, err := json.Marshal(change)
	if err != nil {
		return object{}, fmt.Errorf("encode the patch: %w", err)
	}
	got, err := at.Patch(ctx, o.meta().Name, body)
	return object{Object: got}, err
}

// essence is the part of an object that a person writes, in one way of writing.
func essence(o object) []byte {
	m := o.meta()
	e := struct {
		Labels      map[string]string `json:",omitempty"`
		Annotations map[string]string `json:",omitempty"`
		Spec        any
	}{Labels: m.Labels, Annotations: m.Annotations, Spec: o.kind().entry().spec(o)}
	raw, _ := json.Marshal(e) // strings and numbers always encode
	return raw
}
