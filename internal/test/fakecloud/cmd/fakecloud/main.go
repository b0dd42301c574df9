// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command fakecloud simulates three clouds and their Crossplane providers for `make demo-import`. In each cloud there
// is one cluster, whose API server is that of a real cluster.
//
//	fakecloud crds DIR
//	fakecloud run --hub=KUBECONFIG --eks=KUBECONFIG --aks=KUBECONFIG --gke=KUBECONFIG --dir=DIR
//
// The first command writes the CRDs of the providers. The second runs until its standard input ends. Each line of
// standard input is an event in the clouds, "rotate" or "remove-pool", or asks for a "report" about the requests to
// them. The command answers each with a line. If MASTHEAD_WEBHOOKS names the folder of the programs that make webhooks
// builds, the hub has the webhooks of Cluster API's providers.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/internal/test/providercrds"
)

// The clusters, by their names in the clouds.
const (
	region, eksName          = "eu-central-1", "cafe0123"
	resourceGroup, aksName   = "shop-group", "shop"
	location, gkeName        = "europe-west3", "shop"
	goingPool                = "green"
	tokenLifetime            = 60
	clusterRole, accountName = "cluster-admin", "imported"
)

func main() {
	ctrl.SetLogger(logr.Discard())
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fakecloud:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "crds":
		_, err := providercrds.Write(ctx, args[1], providercrds.Imports()...)
		return err
	case len(args) > 0 && args[0] == "run":
		return play(ctx, args[1:])
	}
	return errors.New("want the command crds DIR, or run with its flags")
}

// play runs the clouds.
func play(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	hub := flags.String("hub", "", "kubeconfig of the hub")
	eks := flags.String("eks", "", "kubeconfig of the cluster of EKS")
	aks := flags.String("aks", "", "kubeconfig of the cluster of AKS")
	gke := flags.String("gke", "", "kubeconfig of the cluster of GKE")
	dir := flags.String("dir", ".", "folder for the key of Google's service account and the CA of its token endpoint")
	if err := flags.Parse(args); err != nil {
		return err
	}
	content, err := os.ReadFile(*hub)
	if err != nil {
		return fmt.Errorf("cannot read the kubeconfig of the hub: %w", err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		return fmt.Errorf("cannot read the kubeconfig of the hub: %w", err)
	}
	webhooks, err := importertest.StartWebhooks(ctx, config, content)
	defer func() { err = errors.Join(err, webhooks.Stop()) }()
	if err != nil {
		return err
	}
	apis := map[string]fakecloud.API{}
	for cluster, kubeconfig := range map[string]string{"eks": *eks, "aks": *aks, "gke": *gke} {
		if apis[cluster], err = newAPI(ctx, kubeconfig); err != nil {
			return err
		}
	}
	tokens := fakecloud.NewTokenEndpoint(tokenLifetime)
	defer tokens.Close()
	if err := writeKey(tokens, apis["gke"], *dir); err != nil {
		return err
	}
	cloud := newCloud(apis)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- cloud.Run(ctx, config) }()
	fmt.Println("token endpoint:", tokens.URL())
	go func() {
		happen(cloud, os.Stdin, os.Stdout)
		cancel()
	}()
	return <-done
}

func newAPI(ctx context.Context, kubeconfig string) (fakecloud.API, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fakecloud.API{}, fmt.Errorf("cannot read the kubeconfig of a cluster: %w", err)
	}
	return fakecloud.ServiceAccountAPI(ctx, config, accountName, clusterRole)
}

// writeKey writes what an import of GKE needs: the key of a service account, and the CA of the endpoint that gives its
// tokens.
func writeKey(tokens *fakecloud.TokenEndpoint, api fakecloud.API, dir string) error {
	key, err := tokens.GoogleKey("/token", api.Token)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"google-key.json": key, "token-ca.pem": tokens.Authority()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("cannot write %s: %w", name, err)
		}
	}
	return nil
}

// newCloud returns a cloud with the three clusters, each with two node pools.
func newCloud(apis map[string]fakecloud.API) *fakecloud.Cloud {
	cloud := fakecloud.New()
	cloud.AddEKS(fakecloud.EKS{
		Region: region, Name: eksName, API: apis["eks"], NodeGroups: []fakecloud.NodeGroup{{Name: "blue"}, {Name: goingPool}},
		Subnets: []fakecloud.Subnet{
			{ID: "subnet-0a1b2c3d", Zone: region + "a", CIDR: "10.20.0.0/20", Public: true}, {ID: "subnet-1a1b2c3d", Zone: region + "b", CIDR: "10.20.16.0/20"},
		},
	})
	cloud.AddAKS(fakecloud.AKS{
		ResourceGroup: resourceGroup, Name: aksName, Location: "westeurope", API: apis["aks"], NodePools: []fakecloud.AKSNodePool{{Name: "apps"}},
	})
	cloud.AddGKE(fakecloud.GKE{
		Location: location, Name: gkeName, API: apis["gke"], NodePools: []fakecloud.GKENodePool{{Name: "blue"}, {Name: goingPool}},
	})
	return cloud
}

// happen applies the events in the lines to the clouds, and writes an answer to each line.
func happen(cloud *fakecloud.Cloud, lines io.Reader, answers io.Writer) {
	for scanner := bufio.NewScanner(lines); scanner.Scan(); {
		var answer string
		switch scanner.Text() {
		case "rotate":
			cloud.RotateTokens()
			answer = "the tokens are rotated"
		case "remove-pool":
			answer = fmt.Sprintf("the node group %s of EKS is removed: %v", goingPool, cloud.RemoveNodeGroup(region, eksName, goingPool))
		case "report":
			requests := 0
			for _, n := range cloud.Requests() {
				requests += n
			}
			answer = fmt.Sprintf("requests that read: %d; attempts to change something: %d", requests, len(cloud.Mutations()))
		default:
			answer = "unknown: " + scanner.Text()
		}
		_, _ = fmt.Fprintln(answers, answer)
	}
}
