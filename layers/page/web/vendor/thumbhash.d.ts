export function rgbaToThumbHash(width: number, height: number, rgba: ArrayLike<number>): Uint8Array;
export function thumbHashToDataURL(hash: ArrayLike<number>): string;
export function thumbHashToRGBA(hash: ArrayLike<number>): { w: number; h: number; rgba: Uint8Array };
export function thumbHashToAverageRGBA(hash: ArrayLike<number>): { r: number; g: number; b: number; a: number };
export function thumbHashToApproximateAspectRatio(hash: ArrayLike<number>): number;
