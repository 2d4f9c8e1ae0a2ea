// Command cilium_engine judges connections by the policy engine of Cilium itself.
//
// It reads JSON documents {"policies": [CiliumNetworkPolicy...], "connections": [...]} from stdin, and prints one line
// for each connection: its name, and "allowed" or "denied". Unknown fields of a policy, and policies that Cilium would
// refuse, end it with an error.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/cilium/cilium/api/v1/models"
	v2 "github.com/cilium/cilium/pkg/k8s/apis/cilium.io/v2"
	"github.com/cilium/cilium/pkg/labels"
	"github.com/cilium/cilium/pkg/policy"
	"github.com/cilium/cilium/pkg/policy/api"
)

// connection has the labels of both ends, each with its source. Only ends that are Pods with policies are judged.
type connection struct {
	Name                             string
	From, To                         []string
	SenderIsJudged, ReceiverIsJudged bool
	Port                             uint16
}

type document struct {
	Policies    []json.RawMessage
	Connections []connection
}

func main() {
	documents := json.NewDecoder(bufio.NewReader(os.Stdin))
	for {
		var found document
		if err := documents.Decode(&found); err == io.EOF {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		repository := policy.NewStoppedPolicyRepository(nil, nil, nil)
		for _, each := range found.Policies {
			repository.MustAddList(rulesOf(each))
		}
		for _, each := range found.Connections {
			verdict := "denied"
			if isAllowed(repository, each) {
				verdict = "allowed"
			}
			fmt.Println(each.Name, verdict)
		}
	}
}

func rulesOf(content []byte) api.Rules {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	var found v2.CiliumNetworkPolicy
	if err := decoder.Decode(&found); err != nil {
		log.Fatal(err)
	}
	rules, err := found.Parse()
	if err != nil {
		log.Fatalf("%s/%s: %v", found.Namespace, found.Name, err)
	}
	return rules
}

func isAllowed(repository *policy.Repository, each connection) bool {
	context := &policy.SearchContext{
		From:   labels.NewLabelsFromModel(each.From).LabelArray(),
		To:     labels.NewLabelsFromModel(each.To).LabelArray(),
		DPorts: []*models.Port{{Port: each.Port, Protocol: models.PortProtocolTCP}},
	}
	leaves := !each.SenderIsJudged || repository.AllowsEgressRLocked(context) == api.Allowed
	return leaves && (!each.ReceiverIsJudged || repository.AllowsIngressRLocked(context) == api.Allowed)
}
