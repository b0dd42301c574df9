// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command standin replaces the programs in the containers of the sample applications, where their images are not
// available. The name under which it is called decides what it is: a database that accepts connections (mysqld), a web
// server that answers if it reaches its database (apache2), a program that waits (sleep), or one that sends a request
// to a web server and reports by its exit status whether that answered (wget). Under the name eat it takes as much
// memory as requested, which shows that a limit is enforced.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is the timeout for each wait for another program.
const patience = 2 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, filepath.Base(os.Args[0]), os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name string, args []string) error {
	switch name {
	case "mysqld":
		return database(ctx, ":3306")
	case "apache2":
		return webServer(ctx, ":80", net.JoinHostPort(os.Getenv("WORDPRESS_DB_HOST"), "3306"))
	case "sleep":
		<-ctx.Done()
		return nil
	case "wget":
		return wget(ctx, args)
	case "eat":
		return eat(ctx, args)
	}
	return fmt.Errorf("there is no stand-in for %q", name)
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	return listener, nil
}

// database accepts connections, and sends nothing.
func database(ctx context.Context, address string) error {
	listener, err := listen(ctx, address)
	if err != nil {
		return err
	}
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		_ = connection.Close()
	}
}

// webServer answers with 200 if the database accepts a connection, and with 500 otherwise.
func webServer(ctx context.Context, address, database string) error {
	listener, err := listen(ctx, address)
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dialer := net.Dialer{Timeout: patience}
		connection, err := dialer.DialContext(r.Context(), "tcp", database)
		if err != nil {
			http.Error(w, "Error establishing a database connection", http.StatusInternalServerError)
			return
		}
		_ = connection.Close()
	})}
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

// wget requests the last of its arguments. The other arguments only request what it does anyway.
func wget(ctx context.Context, args []string) error {
	if len(args) == 0 || !strings.HasPrefix(args[len(args)-1], "http://") {
		return errors.New("wget: say which URL")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, args[len(args)-1], http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("wget: %s", response.Status)
	}
	return nil
}

// eat allocates memory, in MiB, and keeps it.
func eat(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("eat: say how many MiB")
	}
	size, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	const mebibyte = 1 << 20
	var eaten [][]byte
	for range size {
		piece := make([]byte, mebibyte)
		for i := 0; i < len(piece); i += os.Getpagesize() {
			piece[i] = 1
		}
		eaten = append(eaten, piece)
	}
	<-ctx.Done()
	fmt.Println(len(eaten))
	return nil
}
