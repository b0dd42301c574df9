// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command function serves the composition function of the local fleet to Crossplane.
package main

import (
	"flag"
	"fmt"
	"os"

	fn "github.com/crossplane/function-sdk-go"
	"k8s.io/utils/clock"

	"github.com/masthead-dev/masthead/test/localfleet/function"
)

func main() {
	address := flag.String("address", "127.0.0.1:9443", "Address to serve gRPC on.")
	certificates := flag.String("tls-certs-dir", "", "Folder with tls.crt, tls.key and ca.crt; clients must show a certificate of that CA.")
	flag.Parse()

	err := fn.Serve(function.New(clock.RealClock{}),
		fn.Listen("tcp", *address), fn.MTLSCertificates(*certificates), fn.WithMetricsServer(""))
	if err != nil {
		fmt.Fprintf(os.Stderr, "function: %v\n", err)
		os.Exit(1)
	}
}
