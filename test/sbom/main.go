// Command sbom writes a CycloneDX software bill of materials beside each
// program that it is given: the modules that Go linked into it, with the
// versions and hashes of go.sum. The same program gives the same bytes.
package main

import (
	"debug/buildinfo"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	sums := flag.String("sums", "go.sum", "the module's go.sum")
	into := flag.String("into", ".", "the folder that takes PROGRAM.cdx.json")
	flag.Parse()
	if err := run(*sums, *into, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(sums, into string, programs []string) error {
	text, err := os.ReadFile(sums)
	if err != nil {
		return err
	}
	hashes, err := parseSums(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", sums, err)
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return err
		}
		document, err := bill(filepath.Base(program), info, hashes)
		if err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		path := filepath.Join(into, filepath.Base(program)+".cdx.json")
		if err := os.WriteFile(path, document, 0o644); err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}
