import { queue } from './types';
export = queue;
