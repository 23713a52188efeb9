/** Twice what a run may hold, so that a snapshot in `values` mode fits. Longer ones are no host's of ours. */
export declare const MAX_EVENT_CHARS: number;
export interface Frame {
    event: string;
    data: string;
    /** The id of this frame; null if it has none of its own, so that it does not move the place to resume from. */
    id: string | null;
}
/** Takes bytes as they come and gives the frames that are complete. Lines end in LF, CRLF or CR. */
export declare class FrameParser {
    #private;
    /** How long the host wants to be left alone before a new connection, in ms, if it said so. */
    retryMs: number | undefined;
    constructor(most?: number);
    push(bytes: Uint8Array): Frame[];
}
