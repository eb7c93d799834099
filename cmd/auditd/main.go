// Command auditd is the local firewall between agents and the world: the
// daemon, and every tool around it.
//
// main hands everything to run, which is a function of its arguments, its
// environment and its streams, so that tests run the same program. wire.go
// puts the daemon together; each command has a file of its own.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
