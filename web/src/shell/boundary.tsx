// A bug in one page does not take down the console.

import { Component, type ErrorInfo, type ReactNode } from "react";
import { Button } from "react-aria-components";

interface Props {
  /** The current path. A new path tries again. */
  place: string;
  children: ReactNode;
}

export class Boundary extends Component<Props, { error?: Error; place: string }> {
  override state: { error?: Error; place: string } = { place: this.props.place };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  static getDerivedStateFromProps(props: Props, state: { place: string }) {
    return props.place === state.place ? null : { place: props.place, error: undefined };
  }

  override componentDidCatch(error: Error, info: ErrorInfo) {
    console.error("the page broke", error, info.componentStack);
  }

  override render() {
    if (this.state.error === undefined) return this.props.children;
    return (
      <div className="page" role="alert">
        <h1 tabIndex={-1}>This page failed</h1>
        <p>
          This is a bug in the console. It sent nothing to the host, and pending questions are still there.
        </p>
        <pre className="code">{this.state.error.message}</pre>
        <Button className="button" onPress={() => location.reload()}>
          Reload
        </Button>
      </div>
    );
  }
}
