// What the page uses of htm's preact/standalone module (preact 10's hooks and htm), for `make check-types`.

export type Child = unknown;
export type SetState<T> = (next: T | ((before: T) => T)) => void;

/** Markup as a value, which `render` shows. */
export function html(strings: TemplateStringsArray, ...values: unknown[]): Child;
export function render(child: Child, parent: Element): void;

export function useState<T = any>(initial?: T | (() => T)): [T, SetState<T>];
export function useReducer<T, A = void>(reduce: (before: T, action: A) => T, initial: T): [T, (action: A) => void];
export function useEffect(run: () => void | (() => void), inputs?: unknown[]): void;
export function useLayoutEffect(run: () => void | (() => void), inputs?: unknown[]): void;
export function useMemo<T>(make: () => T, inputs: unknown[]): T;
export function useRef<T = any>(initial?: T): { current: T };
export function useErrorBoundary(noted?: (error: any) => void): [any, () => void];

export class Component {
    props: any;
    state: any;
    setState(next: object): void;
    forceUpdate(): void;
    componentDidCatch?(error: any): void;
}
