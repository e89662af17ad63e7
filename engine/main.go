// Command podwarden-engine is a whole Kubernetes control plane in one binary.
//
// `podwarden-engine up --data DIR` is the supervisor: it starts this same binary once for each
// component, watches over them and stops them in order. A component's name as the first argument
// runs that component alone in this process.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"podwarden.io/engine/internal/options"
	"podwarden.io/engine/internal/up"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	os.Exit(run(os.Args))
}

func run(args []string) int {
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, usage())
		return exitUsage
	}
	switch name := args[1]; name {
	case "--version", "version":
		fmt.Println(versionLine())
		return 0
	case "--help", "-h", "help":
		fmt.Println(usage())
		return 0
	case "up":
		return runUp(args[2:])
	default:
		component, known := components[name]
		if !known {
			fmt.Fprintf(os.Stderr, "podwarden-engine: unknown command %q; known: up, --version, %s\n", name, strings.Join(componentNames(), ", "))
			return exitUsage
		}
		os.Args = append([]string{name}, args[2:]...)
		return component()
	}
}

// runUp runs the supervisor until a signal or a failure ends it. A second signal gives up on order.
func runUp(args []string) int {
	opts, err := options.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Println(options.Usage())
		return 0
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "podwarden-engine up: %v\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop)
	if err := up.Run(ctx, opts, versions()); err != nil {
		fmt.Fprintf(os.Stderr, "podwarden-engine up: %v\n", err)
		return exitFailed
	}
	return 0
}

func usage() string {
	return "usage: podwarden-engine up --data DIR [flags] | --version | COMPONENT [its flags]\n" +
		"components: " + strings.Join(componentNames(), ", ")
}
