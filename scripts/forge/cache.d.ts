import { cache } from './types';
export = cache;
