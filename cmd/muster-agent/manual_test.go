package main

import (
	"io"
	"testing"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/test/manualtest"
)

func tree() *cobra.Command { return newRoot(io.Discard, io.Discard) }

func TestEveryCommandAndFlagHasAText(t *testing.T)   { manualtest.Texts(t, tree()) }
func TestTheReferenceOfCommandsIsFresh(t *testing.T) { manualtest.Page(t, tree()) }
func TestEveryCommandHasAManPage(t *testing.T)       { manualtest.Man(t, tree) }
func TestShellsGetACompletion(t *testing.T)          { manualtest.Completions(t, tree) }
