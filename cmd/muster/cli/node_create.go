package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

func (a *app) nodeCreateCommand() *cobra.Command {
	var labels, taints, capacity, allocatable []string
	cmd := &cobra.Command{
		Use:   "create NODE",
		Short: "Create a node before its host joins, and make its bootstrap token",
		Long: "create writes the labels and taints of a node whose agent has not joined yet, and the capacity that\n" +
			"the host is expected to have. It prints a bootstrap token for this node id, good for one host: put\n" +
			"it into the file that the agent's bootstrapTokenFile names, with mode 0600. Until the agent has\n" +
			"registered the node is Unregistered; a host that is not as expected gets the condition\n" +
			"CapacityDiffers with the numbers. muster apply -f creates nodes of documents likewise.",
		Example: "  muster node create gpu-43 --label rack=r12 --label zone=a --capacity nvidia.com/gpu=8 --capacity memory=1Ti",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := a.named(nodeKind, args)
			if err != nil {
				return err
			}
			n := &api.Node{Metadata: api.ObjectMeta{Name: names[0]}}
			if n.Metadata.Labels, err = pairsOf("--label", labels); err != nil {
				return err
			}
			if n.Spec.Taints, err = taintsOf(taints); err != nil {
				return err
			}
			if n.Spec.Capacity, err = quantitiesOf("--capacity", capacity); err != nil {
				return err
			}
			if n.Spec.Allocatable, err = quantitiesOf("--allocatable", allocatable); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			made, err := a.client.Nodes().Create(ctx, n)
			if err != nil {
				return fmt.Errorf("create node %s: %w", names[0], err)
			}
			if !a.isTable() {
				o := objectOf(api.KindNode, made)
				return a.print([]object{o}, listOf([]object{o}))
			}
			a.notef("node %q created, %s\n", names[0], made.Status.Phase)
			if made.Status.BootstrapToken != "" {
				a.printf("%s\n", made.Status.BootstrapToken)
				a.notef("this token lets one host join as %s, within an hour; it is shown once\n", names[0])
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&labels, "label", nil, "label KEY=VALUE, as muster label sets it; may be repeated")
	f.StringArrayVar(&taints, "taint", nil, "taint KEY=VALUE:NoSchedule, as muster taint sets it; may be repeated")
	f.StringArrayVar(&capacity, "capacity", nil, "expected RESOURCE=AMOUNT of the whole host; may be repeated")
	f.StringArrayVar(&allocatable, "allocatable", nil, "expected RESOURCE=AMOUNT without the part that the system keeps; may be repeated")
	return cmd
}

// pairsOf reads the values KEY=VALUE of a flag.
func pairsOf(flag string, values []string) (map[string]string, error) {
	var pairs map[string]string
	for _, value := range values {
		key, text, both := strings.Cut(value, "=")
		switch _, twice := pairs[key]; {
		case !both || key == "":
			return nil, usagef("%s %q: want KEY=VALUE", flag, value)
		case twice:
			return nil, usagef("%s %q: %s is given twice", flag, value, key)
		}
		if pairs == nil {
			pairs = map[string]string{}
		}
		pairs[key] = text
	}
	return pairs, nil
}

// quantitiesOf reads the values RESOURCE=AMOUNT of a flag.
func quantitiesOf(flag string, values []string) (map[resource.Name]string, error) {
	pairs, err := pairsOf(flag, values)
	if err != nil || pairs == nil {
		return nil, err
	}
	quantities := map[resource.Name]string{}
	for name, text := range pairs {
		if _, err := resource.ParseAmount(resource.Name(name), text); err != nil {
			return nil, usagef("%s %s=%s: %w", flag, name, text, err)
		}
		quantities[resource.Name(name)] = text
	}
	return quantities, nil
}

// taintsOf reads taints as muster taint does.
func taintsOf(values []string) ([]api.Taint, error) {
	var taints []api.Taint
	for _, value := range values {
		pair, effect, both := strings.Cut(value, ":")
		key, text, _ := strings.Cut(pair, "=")
		if !both || key == "" {
			return nil, usagef("--taint %q: want KEY=VALUE:NoSchedule", value)
		}
		taints = append(taints, api.Taint{Key: key, Value: text, Effect: effect})
	}
	return taints, nil
}

func (a *app) nodeLimitCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "limit NODE RESOURCE=AMOUNT…",
		Short: "Withhold some GPUs, CPUs or memory of a node from new work",
		Long: "limit lowers the amount of a node that Muster hands out. Of 8 GPUs with nvidia.com/gpu=6, the two\n" +
			"least useful free ones take no new work: unhealthy ones first, then those with the weakest links.\n" +
			"Of CPUs and memory no particular ones are withheld: new work leaves as much of them free.\n" +
			"Running work stays: where too few are free, further ones are withheld as they become free.\n" +
			"RESOURCE- ends the limit, and so does the amount that the agent has found. It survives a failover\n" +
			"and a new registration; muster describe node shows the devices.",
		Example: "  muster node limit gpu-07 nvidia.com/gpu=6\n  muster node limit gpu-07 cpu=80 memory=900Gi\n  muster node limit gpu-07 nvidia.com/gpu-",
		Args:    arguments(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			patch := api.NodeStatusPatch{Wanted: map[resource.Name]*int64{}}
			for _, change := range args[1:] {
				if name, ends := strings.CutSuffix(change, "-"); ends && !strings.Contains(change, "=") {
					patch.Wanted[resource.Name(name)] = nil
					continue
				}
				name, text, both := strings.Cut(change, "=")
				if !both {
					return usagef("%q: want RESOURCE=AMOUNT, or RESOURCE- to end the limit", change)
				}
				amount, err := api.ParseAmount(resource.Name(name), text)
				if err != nil {
					return usagef("%s: %w", change, err)
				}
				patch.Wanted[resource.Name(name)] = &amount
			}
			names, err := a.named(nodeKind, args[:1])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			n, err := a.client.Nodes().PatchStatus(ctx, names[0], patch)
			if err != nil {
				return fmt.Errorf("limit node %s: %w", names[0], err)
			}
			if !a.isTable() {
				o := objectOf(api.KindNode, n)
				return a.print([]object{o}, listOf([]object{o}))
			}
			a.printf("node %q hands out %s\n", names[0], amounts(n.Status.Allocatable))
			if at := slices.IndexFunc(n.Status.Conditions, func(c api.Condition) bool { return c.Type == "CapacityLowered" }); at >= 0 {
				a.notef("%s\n", n.Status.Conditions[at].Message)
			}
			return nil
		},
		ValidArgsFunction: a.completeNames(nodeKind),
	}
}
