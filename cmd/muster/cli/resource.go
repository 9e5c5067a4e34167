package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/musterd/muster/api"
)

// This file shows the names of resources.

func resourceRow(r *api.Resource, now time.Time) (cells, wide []string) {
	cells = []string{
		r.Metadata.Name, r.Spec.Kind, r.Spec.Unit, r.Spec.Scope, strings.Join(r.Status.Sources, ","), strconv.Itoa(r.Status.Nodes),
		age(r.Metadata.CreationTimestamp, now),
	}
	return cells, []string{r.Spec.DisplayName, strconv.Itoa(int(r.Spec.Rank))}
}

func (a *app) describeResource(r *api.Resource) {
	a.facts(append(metaFacts(&r.Metadata), "Display name", r.Spec.DisplayName, "Kind", r.Spec.Kind, "Unit", r.Spec.Unit, "Scope", r.Spec.Scope,
		"Rank", strconv.Itoa(int(r.Spec.Rank)), "Sources", strings.Join(r.Status.Sources, ", "), "Nodes", strconv.Itoa(r.Status.Nodes))...)
}
